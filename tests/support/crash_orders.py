"""Trees and patch orders for tests of the patch writer: what is on disk, what is planned, what must come of it."""

import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from codespace_es.ports.patch_writer import PatchOrder
from codespace_es.vocabulary.event import ABSENT
from codespace_es.vocabulary.file_change import PlannedFile, digest_of
from codespace_es.vocabulary.identifiers import OperationId

OPERATION = OperationId("op-6b1c2f0e-8f0b-4c55-9d8e-4b8f6f2b9a10")

Snapshot = dict[str, tuple[object, ...]]


@dataclass(frozen=True)
class Target:
    """What a path shall become; no content means that it shall be gone."""

    content: bytes | None
    mode: int | None = None
    moved_from: str | None = None


@dataclass(frozen=True)
class Scenario:
    """A tree, and what a patch makes of it."""

    name: str
    files: Mapping[str, tuple[bytes, int]]
    targets: Mapping[str, Target]
    made_directories: tuple[str, ...] = ()
    directories: tuple[str, ...] = field(default=())
    removed_directories: tuple[str, ...] = ()

    def build(self, root: Path) -> None:
        """Make the tree at `root`, which must not exist yet."""
        root.mkdir(parents=True)
        for directory in self.directories:
            (root / directory).mkdir(parents=True, exist_ok=True)
        for path, (content, mode) in self.files.items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_bytes(content)
            (root / path).chmod(mode)

    def order(self, root: Path, operation_id: OperationId = OPERATION) -> PatchOrder:
        """Return the order that a planner would have made of the tree as it was built."""
        images = {digest_of(content): content for content, _ in self.files.values()}
        images |= {digest_of(t.content): t.content for t in self.targets.values() if t.content is not None}
        rows = tuple(self._row(path, target) for path, target in self.targets.items())
        return PatchOrder(
            operation_id, str(root), rows, self.made_directories, images.__getitem__, self.removed_directories
        )

    def _row(self, path: str, target: Target) -> PlannedFile:
        before = self.files.get(path)
        kind = (
            "move" if target.moved_from else "delete" if target.content is None else "update" if before else "add"
        )
        kept = before or self.files.get(target.moved_from or "")
        mode = target.mode if target.mode is not None else kept[1] if kept else 0o644
        return PlannedFile(
            path=path, kind=kind, moved_from=target.moved_from,
            before=digest_of(before[0]) if before else ABSENT,
            after=ABSENT if target.content is None else digest_of(target.content),
            before_bytes=len(before[0]) if before else None,
            after_bytes=None if target.content is None else len(target.content),
            mode=None if target.content is None else mode,
            before_mode=before[1] if before else None,
        )

    def expected_after(self, root: Path) -> Snapshot:
        """Build the tree as it must be after the patch at `root`, and return its snapshot."""
        order = self.order(root)
        modes = {row.path: row.mode for row in order.plan}
        files = dict(self.files)
        for path, target in self.targets.items():
            if target.content is None:
                files.pop(path)
            else:
                files[path] = (target.content, modes[path] or 0o644)
        kept = tuple(
            parent for parent in (str(Path(path).parent) for path in self.files)
            if parent not in self.removed_directories
        )
        Scenario("after", files, {}, directories=self.directories + kept).build(root)
        return snapshot(root)


def snapshot(root: Path) -> Snapshot:
    """Return every name beneath `root` with what it is: content and mode of files, mode of directories."""
    seen: Snapshot = {}
    waiting = [""]
    while waiting:
        beneath = waiting.pop()
        with os.scandir(f"{root}/{beneath}") as entries:
            for entry in entries:
                status = entry.stat(follow_symlinks=False)
                name = f"{beneath}{entry.name}"
                content: object = stat.S_IFMT(status.st_mode)
                if stat.S_ISREG(status.st_mode):
                    with open(entry.path, "rb") as file:
                        content = file.read()
                elif stat.S_ISDIR(status.st_mode):
                    waiting.append(f"{name}/")
                seen[name] = (content, stat.S_IMODE(status.st_mode))
    return seen


def text(name: str, lines: int = 3) -> bytes:
    """Return distinct content of some lines."""
    return b"".join(f"{name} line {number}\n".encode() for number in range(lines))


ONE_FILE = Scenario("one", {"a.txt": (text("old"), 0o644)}, {"a.txt": Target(text("new"))})
FOUR_FILES = Scenario(
    "four",
    {"run.sh": (text("old run"), 0o755), "gone/only.txt": (text("gone"), 0o600), "src/from.py": (text("from"), 0o640)},
    {
        "run.sh": Target(text("new run", 400)),
        "docs/deep/new.md": Target(text("docs")),
        "gone/only.txt": Target(None),
        "src/from.py": Target(None),
        "src/to.py": Target(text("from") + b"more\n", moved_from="src/from.py"),
    },
    made_directories=("docs", "docs/deep"),
)
EIGHT_FILES = Scenario(
    "eight",
    {
        "a.txt": (text("a"), 0o644), "b.bin": (b"\0" * 5000, 0o600), "tool": (text("tool"), 0o644),
        "same.txt": (text("same"), 0o644), "d/one": (text("one"), 0o644), "d/two": (b"", 0o640),
        "d/e/three": (text("three"), 0o444), "bystander": (text("bystander"), 0o644),
    },
    {
        "a.txt": Target(text("a2"), mode=0o755),
        "b.bin": Target(b"\0" * 4999 + b"x"),
        "tool": Target(text("tool"), mode=0o755),
        "same.txt": Target(text("same")),
        "n/x/new1": Target(text("new1"), mode=0o600),
        "n/x/new2": Target(b""),
        "n/y/three": Target(text("three"), moved_from="d/e/three"),
        "d/e/three": Target(None),
        "d/one": Target(None),
        "d/two": Target(text("two now")),
    },
    made_directories=("n", "n/x", "n/y"),
)
UNDO = Scenario(
    "undo",
    {"n/x/new1": (text("new1"), 0o600), "n/new2": (text("new2"), 0o644), "a.txt": (text("a2"), 0o644)},
    {"n/x/new1": Target(None), "n/new2": Target(None), "a.txt": Target(text("a"))},
    removed_directories=("n", "n/x"),
)
"""What undoing a patch that made directories does; these go last, when nothing can fail any more."""
GIVING_WAY = Scenario(
    "giving way",
    {"d": (text("a file"), 0o640), "other": (text("other"), 0o644)},
    {"d": Target(None), "d/a": Target(text("a")), "d/x/b": Target(text("b")), "other": Target(text("other now"))},
    made_directories=("d", "d/x"),
)
"""A file makes room for a directory of the same name."""
SCENARIOS = (ONE_FILE, FOUR_FILES, EIGHT_FILES, GIVING_WAY)
