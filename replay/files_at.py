"""A workspace's files as the log knows them at a moment: what the operations up to there left at each path.

The log knows only what operations have touched. What an operation found before it changed a file is knowledge too;
what somebody edited beside the server is not, until the next operation meets it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import takewhile

from pydantic import BaseModel, ConfigDict, Field

from codespace_es.aggregates.operation import OperationFinished, OperationMinted
from codespace_es.aggregates.workspace import WorkspaceBound
from codespace_es.vocabulary.event import ABSENT, Version
from codespace_es.vocabulary.file_change import FileFinding, PlannedFile, digest_of
from codespace_es.vocabulary.identifiers import StreamId
from replay.source import LogSource

UNKNOWN: Version = "unknown"
"""Stands for a version that the log can't tell."""

_HOLDERS_MAX = 4


class KnownFile(BaseModel):
    """One path of a workspace as the log knows it."""

    model_config = ConfigDict(frozen=True)

    path: str = Field(description="Relative to the root.")
    version: Version = Field(description="Digest of its content, `absent`, or `unknown`.")
    size_bytes: int | None = Field(default=None, description="Size of that content.")
    mode: int | None = Field(default=None, description="Permission bits.")
    operation_id: str = Field(description="The operation that says so.")
    note: str | None = Field(default=None, description="What makes it less than certain.")
    holders: tuple[str, ...] = Field(default=(), description="Operations that store the content, newest last.")


class KnownWorkspace(BaseModel):
    """A workspace and the paths of it that operations have touched."""

    model_config = ConfigDict(frozen=True)

    workspace_key: str = Field(description="Its identity.")
    workspace_id: str = Field(description="Its name when it was last used.")
    root: str | None = Field(default=None, description="Its directory on record.")
    files: tuple[KnownFile, ...] = Field(description="By path.")


@dataclass(slots=True)
class _Workspace:
    name: str = ""
    root: str | None = None
    files: dict[str, KnownFile] = field(default_factory=dict)


class FileKnowledge:
    """What the log says of every workspace's files, event by event. Memory grows with the paths, not with the log."""

    def __init__(self) -> None:
        self.workspaces: dict[str, _Workspace] = {}
        self._begun: dict[str, OperationMinted] = {}

    def see(self, stream_id: str, event: object) -> None:
        """Take in one event."""
        match event:
            case WorkspaceBound():
                known = self.workspaces.setdefault(stream_id, _Workspace())
                known.name, known.root = event.workspace_id, event.root
            case OperationMinted(check_only=False) if event.plan:
                self._begun[stream_id] = event
                self.workspaces.setdefault(event.workspace_key, _Workspace(event.workspace_id))
            case OperationFinished() if stream_id in self._begun:
                self._end(stream_id, self._begun.pop(stream_id), event)
            case _:
                pass

    def told(self) -> tuple[KnownWorkspace, ...]:
        """Return every workspace; files of an operation that isn't over stand as it found them, with a note."""
        files = {key: dict(known.files) for key, known in self.workspaces.items()}
        for stream_id, minted in self._begun.items():
            note = f"{stream_id} was changing it at that moment"
            met = files.setdefault(minted.workspace_key, {})
            for row in minted.plan:
                met[row.path] = _known(met.get(row.path), stream_id, row, row.before, row.before_mode, note=note)
        return tuple(
            KnownWorkspace(
                workspace_key=key, workspace_id=known.name, root=known.root,
                files=tuple(files[key][path] for path in sorted(files[key])),
            )
            for key, known in self.workspaces.items()
        )

    def _end(self, stream_id: str, minted: OperationMinted, event: OperationFinished) -> None:
        files = self.workspaces[minted.workspace_key].files
        findings = {finding.path: finding for finding in event.findings}
        for row in minted.plan:
            finding = findings.get(row.path)
            note: str | None = None
            mode: int | None = None
            if event.status == "applied":
                version, mode = row.after, row.mode
            elif finding is not None:
                version, note = _found(row, finding)
            elif event.status == "failed_rolled_back":
                version, mode = row.before, row.before_mode
            else:
                version, note = UNKNOWN, f"{stream_id} ended as {event.status}"
            files[row.path] = _known(files.get(row.path), stream_id, row, version, mode, note=note)


def _known(
    earlier: KnownFile | None, stream_id: str, row: PlannedFile, version: Version, mode: int | None,
    *, note: str | None,
) -> KnownFile:
    """Return what is known of a row's path once an operation has left `version` there."""
    holders = earlier.holders if earlier is not None and earlier.version == version else ()
    is_held = version in (row.before, row.after) and version != ABSENT
    return KnownFile(
        path=row.path,
        version=version,
        size_bytes=row.after_bytes if version == row.after else row.before_bytes if version == row.before else None,
        mode=mode,
        operation_id=stream_id,
        note=note,
        holders=(*holders, stream_id)[-_HOLDERS_MAX:] if is_held else holders,
    )


def _found(row: PlannedFile, finding: FileFinding) -> tuple[Version, str | None]:
    match finding.found:
        case "before":
            return row.before, None
        case "after":
            return row.after, None
        case "missing":
            return ABSENT, None
        case "foreign":
            return finding.version or UNKNOWN, "somebody else's content, which the log doesn't hold"
        case _:
            return UNKNOWN, "something that is no file"


def files_at(source: LogSource, position: int) -> tuple[KnownWorkspace, ...]:
    """Return what the log knew of every workspace's files at `position`.

    Raises:
        UnknownTopicError: a newer version has written something before.
        StoreUnavailableError: the log can't be read.
    """
    knowledge = FileKnowledge()
    for recorded in takewhile(lambda each: each.position <= position, source.read_log()):
        knowledge.see(recorded.stream_id, recorded.event)
    return knowledge.told()


def content_of(source: LogSource, file: KnownFile) -> bytes | None:
    """Return the content of a known file, checked against its version; None where the log doesn't hold it."""
    return read_version(source, file.version, file.holders)


def read_version(source: LogSource, version: Version, holders: Sequence[str]) -> bytes | None:
    """Return the content of `version` from the first of `holders` that has it whole; nothing for an absent file."""
    if version == ABSENT:
        return b""
    for content in _stored(source, version, holders):
        if digest_of(content) == version:
            return content
    return None


def _stored(source: LogSource, version: Version, holders: Sequence[str]) -> Iterator[bytes]:
    if version == UNKNOWN:
        return
    for holder in reversed(holders):
        content = source.read_body(StreamId(holder), version)
        if content is not None:
            yield content
