"""Short ways to plan a patch against a real directory and to carry it out."""

from collections.abc import Callable, Mapping
from pathlib import Path

from codespace_es.v4a.parser import parse_patch
from codespace_es.v4a.plan import Plan
from codespace_es.v4a.planner import plan_patch
from codespace_es.vocabulary.workspace import PatchMatching
from support.real_tree import RealTree, carry_out


def patch_text(*lines: str) -> str:
    """Return a patch whose headers are written short: `Update a`, `Add a`, `Delete a`, `Move to b`."""
    headers = {"Update ": "*** Update File: ", "Add ": "*** Add File: ", "Delete ": "*** Delete File: ",
               "Move to ": "*** Move to: "}
    written = []
    for line in lines:
        start = next((short for short in headers if line.startswith(short)), None)
        written.append(line if start is None else headers[start] + line.removeprefix(start))
    return "\n".join(["*** Begin Patch", *written, "*** End Patch"]) + "\n"


def plan(
    root: Path, *lines: str, matching: PatchMatching = "lenient", protected: Callable[[str], bool] = lambda _: False,
    new_file_mode: int = 0o644,
) -> Plan:
    """Return the plan of the patch that `lines` are, see `patch_text`."""
    return plan_patch(
        parse_patch(patch_text(*lines)), RealTree(root), matching=matching, protected=protected,
        new_file_mode=new_file_mode,
    )


def apply(root: Path, *lines: str, matching: PatchMatching = "lenient") -> Plan:
    """Plan as `plan` does, write it, and return the plan."""
    made = plan(root, *lines, matching=matching)
    carry_out(made, root)
    return made


def write(root: Path, files: Mapping[str, bytes | str]) -> None:
    """Make `files` below `root`."""
    for path, content in files.items():
        place = root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content if isinstance(content, bytes) else content.encode())
