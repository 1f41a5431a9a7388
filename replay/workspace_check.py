"""Compare a workspace's files with what the log says of them: the offline half of `verify`, used after crashes.

The log alone decides what should stand at each path that an operation ever touched: the image that the last finished
operation left there. A file that is something else is a problem, unless that operation's end says so, or the caller
knows who has edited it. Source: reliability paper section 5, invariants I1, I4 and I5.
"""

import os
import re
import stat
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field

from codespace_es.aggregates.operation import OperationFinished, OperationMinted
from codespace_es.aggregates.workspace import WorkspaceBound
from codespace_es.vocabulary.event import ABSENT, Version
from codespace_es.vocabulary.file_change import PlannedFile, digest_of
from replay.source import LogSource

_TEMP = re.compile(r"\.op-[0-9a-f-]{36}\.\d+(?:\.kept)?\.tmp")
_ANYTHING = "anything"
"""The last operation there says itself that it found something it doesn't know."""


class FileProblem(BaseModel):
    """One path that isn't what the log says."""

    model_config = ConfigDict(frozen=True)

    path: str = Field(description="Relative to the root.")
    operation_id: str | None = Field(default=None, description="The last operation that touched it.")
    expected: tuple[str, ...] = Field(default=(), description="Versions that may stand there.")
    found: str | None = Field(default=None, description="Version that does, or what stands there instead of a file.")
    problem: str = Field(description="One sentence.")


class WorkspaceReport(BaseModel):
    """How a directory compares with the log."""

    model_config = ConfigDict(frozen=True)

    is_ok: bool = Field(description="No problem was found.")
    files: int = Field(description="Paths compared.")
    open_operations: tuple[str, ...] = Field(description="Operations that aren't finished.")
    problems: tuple[FileProblem, ...] = Field(description="By path.")


@dataclass(slots=True)
class _Expected:
    """What the log says of one path."""

    operation_id: str
    versions: tuple[Version, ...]
    mode: int | None = None
    recorded: set[Version] = field(default_factory=set)
    """Every image that any operation planned for this path."""


def check_workspace(
    source: LogSource, root: Path, *, is_settled: bool = True, edited: Collection[str] = (),
    is_mode_checked: bool = True,
) -> WorkspaceReport:
    """Return how the files beneath `root` compare with the log's last word on each.

    Args:
        source: The log.
        root: The directory, as it was bound.
        is_settled: Recovery has run: an open operation and a leftover temporary file are problems. Else each file of
            an open operation may be its image before or after.
        edited: Paths that somebody else has written since, which are not compared.
        is_mode_checked: Compare permission bits too.

    Raises:
        UnknownTopicError: a newer version has written to the log.
        StoreUnavailableError: the log can't be read.
    """
    root = root.absolute()
    expectations, open_operations = _read_expectations(source, str(root))
    compared = (
        _compare(root, path, expected, is_mode_checked=is_mode_checked)
        for path, expected in expectations.items() if path not in edited
    )
    problems = [problem for problem in compared if problem is not None]
    if is_settled:
        problems += [
            FileProblem(path=path, operation_id=each.operation_id, problem="An operation on it is still open.")
            for each in open_operations.values() for path in each.paths
        ]
        problems += [FileProblem(path=path, problem="A temporary file was left behind.") for path in _temps(root)]
    return WorkspaceReport(
        is_ok=not problems, files=len(expectations), open_operations=tuple(open_operations),
        problems=tuple(sorted(problems, key=lambda problem: problem.path)),
    )


@dataclass(frozen=True, slots=True)
class _Open:
    operation_id: str
    plan: tuple[PlannedFile, ...]

    @property
    def paths(self) -> Iterator[str]:
        """The planned paths."""
        return (row.path for row in self.plan)


def _read_expectations(source: LogSource, root: str) -> tuple[dict[str, _Expected], dict[str, _Open]]:
    """Return, by path, what should stand there, and the operations in `root` that aren't finished."""
    keys: set[str] = set()
    expectations: dict[str, _Expected] = {}
    unfinished: dict[str, _Open] = {}
    for recorded in source.read_log():
        event, stream_id = recorded.event, str(recorded.stream_id)
        if isinstance(event, WorkspaceBound) and event.root == root:
            keys.add(stream_id)
        elif isinstance(event, OperationMinted) and event.workspace_key in keys and not event.check_only:
            unfinished[stream_id] = _Open(stream_id, event.plan)
        elif isinstance(event, OperationFinished) and stream_id in unfinished:
            _apply_end(expectations, unfinished.pop(stream_id), event)
    for each in unfinished.values():
        for row in each.plan:
            expectations[row.path] = _Expected(each.operation_id, (row.before, row.after))
    return expectations, unfinished


def _apply_end(expectations: dict[str, _Expected], ended: _Open, event: OperationFinished) -> None:
    """Note what the end of an operation says of each of its files."""
    found = {finding.path: finding for finding in event.findings}
    for row in ended.plan:
        finding = found.get(row.path)
        known = expectations.get(row.path)
        recorded = (known.recorded if known else set()) | {row.before, row.after}
        versions: tuple[Version, ...]
        mode: int | None
        if event.status == "applied":
            versions, mode = (row.after,), row.mode
        elif finding is not None:
            versions, mode = _versions_found(row, finding.found, finding.version), None
        elif event.status == "failed_rolled_back":
            versions, mode = (row.before,), row.before_mode
        else:
            versions, mode = (_ANYTHING,), None
        expectations[row.path] = _Expected(ended.operation_id, versions, mode, recorded)


def _versions_found(row: PlannedFile, found: str, version: Version | None) -> tuple[Version, ...]:
    return {
        "before": (row.before,), "after": (row.after,), "missing": (ABSENT,),
    }.get(found, (_ANYTHING,) if version is None else (version,))


def _compare(root: Path, path: str, expected: _Expected, *, is_mode_checked: bool) -> FileProblem | None:
    """Return what is wrong with the file at `path`, None if nothing is."""
    if _ANYTHING in expected.versions:
        return None
    found, mode = _look(root / path)
    problem = None
    if found not in expected.versions:
        is_image = found in expected.recorded
        problem = "It has another recorded image than its last operation left." if is_image else (
            "It has a content that no operation recorded: it was torn, or somebody has edited it."
        )
    elif is_mode_checked and mode is not None and expected.mode is not None and mode != expected.mode:
        problem = f"It has permission bits {mode:o}, not {expected.mode:o}."
    if problem is None:
        return None
    return FileProblem(
        path=path, operation_id=expected.operation_id, expected=expected.versions, found=found, problem=problem
    )


def _look(path: Path) -> tuple[str, int | None]:
    """Return the version at `path`, never following a link, and its permission bits if it is a file."""
    try:
        status = path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return ABSENT, None
    if not stat.S_ISREG(status.st_mode):
        return "not a file", None
    return digest_of(path.read_bytes()), stat.S_IMODE(status.st_mode)


def _temps(root: Path) -> Iterator[str]:
    """Yield each temporary file of a patch beneath `root`, relative to it."""
    for directory, _, names in os.walk(root):
        for name in names:
            if _TEMP.fullmatch(name):
                yield os.path.relpath(os.path.join(directory, name), root)

