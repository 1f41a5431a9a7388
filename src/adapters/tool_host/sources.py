"""Where custom tools come from: `DATA/tools/*.py`, the configuration's paths, installed packages' entry points.

Never from a workspace: an agent could have written it. That, and who may write a file, is seen to by whoever loads it.
"""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path

from codespace_es.ports.custom_tools import SourceFault

ENTRY_POINTS = "codespace_es.tools"


@dataclass(frozen=True, slots=True)
class Source:
    """One thing to load. `name` is how people are told of it: `tools/FILE`, a configured path, or the entry point."""

    name: str
    path: str | None = None
    entry_point: str | None = None
    """`module` or `module:attribute`."""

    def to_wire(self) -> dict[str, str]:
        """Return what the process that loads it is told."""
        place = {"path": self.path} if self.path is not None else {"entry_point": self.entry_point or ""}
        return {"name": self.name, **place}


@dataclass(frozen=True, slots=True)
class Sources:
    """What there is to load, in order: the first of two tools with one name stands."""

    found: tuple[Source, ...]
    faults: tuple[SourceFault, ...]


def find_sources(data_directory: Path, configured: Sequence[Path]) -> Sources:
    """Return every source. For a worker thread: installed packages are looked through. Never raises.

    A file whose name begins with `_` or `.` is no tool file; tool files may import it.
    """
    found: dict[str, Source] = {}
    faults: list[SourceFault] = []
    for path in _files_in(data_directory / "tools", faults, is_required=False):
        found[str(path)] = Source(f"tools/{path.name}", path=str(path))
    for path in _configured(configured, faults):
        found.setdefault(str(path), Source(str(path), path=str(path)))
    for point in _entry_points(faults):
        name = f"entry point {point.name} = {point.value}"
        found.setdefault(name, Source(name, entry_point=point.value))
    return Sources(tuple(found.values()), tuple(faults))


def _entry_points(faults: list[SourceFault]) -> list[EntryPoint]:
    try:
        return sorted(entry_points(group=ENTRY_POINTS), key=lambda each: (each.name, each.value))
    except Exception as error:
        # What some package has written into its metadata, whatever it is, is no reason not to start.
        faults.append(SourceFault("installed packages", f"they can't be looked through: {error}."))
        return []


def _configured(paths: Sequence[Path], faults: list[SourceFault]) -> Iterator[Path]:
    for path in paths:
        if path.is_dir():
            yield from _files_in(path, faults, is_required=True)
        elif path.exists():
            yield path
        else:
            faults.append(SourceFault(str(path), "custom_tools names it, and it isn't there."))


def _files_in(directory: Path, faults: list[SourceFault], *, is_required: bool) -> list[Path]:
    try:
        names = sorted(os.listdir(directory))
    except FileNotFoundError:
        return []
    except OSError as error:
        faults.append(SourceFault(str(directory), f"it can't be read: {error.strerror}."))
        return []
    files = [directory / name for name in names if name.endswith(".py") and not name.startswith(("_", "."))]
    if is_required and not files:
        faults.append(SourceFault(str(directory), "custom_tools names it, and no tool file (*.py) is in it."))
    return files
