"""The key of a data directory, under which input of commands is recorded: made once, shared by all its servers."""

import os
import secrets
from pathlib import Path

from adapters.settings.regular_file import read_regular

_KEY_BYTES = 32


def input_key(data_directory: Path) -> bytes:
    """Return the key in `data_directory`; make it, whole and private, if it isn't there. Raises OSError."""
    path = data_directory / "input.key"
    if not path.exists():
        fresh = data_directory / f".input.{os.getpid()}.key"
        descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            os.write(descriptor, secrets.token_bytes(_KEY_BYTES))
            os.fsync(descriptor)
            # Two servers may be here at once: the first name stands, and both read what it says.
            os.link(fresh, path)
        except FileExistsError:
            pass
        finally:
            os.close(descriptor)
            fresh.unlink()
    return read_regular(path)
