"""Directories in memory, for sweeps over the deaths of processes: these leave the same there as on a disk.

What a power cut leaves is another matter: those tests bring a disk of their own, which is cut.
"""

import shutil
from pathlib import Path

MEMORY = "/dev/shm" if Path("/dev/shm").is_dir() else None
"""Where temporary directories are in memory, for `tempfile`; its default where there is none."""


def room_in_memory(least_bytes: int) -> str | None:
    """Return `MEMORY` if that much is free there; containers often have little."""
    return MEMORY if MEMORY and shutil.disk_usage(MEMORY).free >= least_bytes else None
