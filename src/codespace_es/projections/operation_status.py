"""What is known of one operation: its status, its changes, when, and what it undid or was undone by.

Never runs anything. An operation that isn't finished is `unknown`, without `finished_at`. Source: contract B1.7, A1.
"""

from collections.abc import Iterable

from pydantic import BaseModel, ConfigDict, Field

from codespace_es.aggregates.operation import OperationFinished, OperationMinted, OperationReverted
from codespace_es.vocabulary.answer import Answer
from codespace_es.vocabulary.event import RecordedEvent
from codespace_es.vocabulary.file_change import FileChange, FileFinding, change_of
from codespace_es.vocabulary.patch_result import ResultError


class LedgerEntry(BaseModel):
    """One line of an operation's life."""

    model_config = ConfigDict(frozen=True)

    at: int = Field(description="Unix seconds.")
    name: str = Field(description="minted or finished.")
    status: str | None = Field(default=None, description="With finished.")
    reason: str | None = Field(default=None, description="With an unknown or recovered end.")


class OperationReport(Answer):
    """The truth about an operation, as far as it can be known."""

    operation_id: str = Field(description="The operation.")
    status: str = Field(description="unknown while it isn't finished.")
    replayed: bool = Field(default=False, description="Always false here.")
    kind: str = Field(default="patch", description="Always patch.")
    source: str = Field(
        description="apply_patch, ast_edit, revert or the custom tool's name; custom_tool if that is one of these."
    )
    workspace_id: str = Field(description="Where.")
    check_only: bool = Field(description="It was a preview.")
    created_at: int = Field(description="Unix seconds.")
    finished_at: int | None = Field(default=None, description="Unix seconds; absent while unfinished.")
    operation_key: str | None = Field(default=None, description="The caller's key.")
    work_id: str | None = Field(default=None, description="The work it belongs to.")
    error: ResultError | None = Field(default=None, description="The error it ended with.")
    files: tuple[str, ...] | None = Field(default=None, description="Planned paths.")
    changes: tuple[FileChange, ...] | None = Field(default=None, description="One entry a path.")
    findings: tuple[FileFinding, ...] | None = Field(default=None, description="What was found after a failure.")
    events: tuple[LedgerEntry, ...] | None = Field(default=None, description="minted, finished.")
    reverts: str | None = Field(default=None, description="The operation that this one undoes.")
    also_reverts: tuple[str, ...] | None = Field(default=None, description="Older ones that it undoes as well.")
    reverted_by: str | None = Field(default=None, description="The operation that undid this one.")


def project(recorded: Iterable[RecordedEvent]) -> OperationReport:
    """Return the report of one operation's stream, which has at least its `minted`."""
    minted: OperationMinted | None = None
    finished: OperationFinished | None = None
    reverted_by: str | None = None
    operation_id = ""
    ledger: list[LedgerEntry] = []
    for entry in recorded:
        at = int(entry.envelope.recorded_at.timestamp())
        match entry.event:
            case OperationMinted() as event:
                minted, operation_id = event, entry.stream_id
                ledger.append(LedgerEntry(at=at, name="minted"))
            case OperationFinished() as event:
                finished = event
                ledger.append(LedgerEntry(at=at, name="finished", status=event.status, reason=event.reason))
            case OperationReverted(by=by):
                reverted_by = by
    assert minted is not None, "an operation's stream begins with minted"
    changes = changes_told(minted, finished)
    return OperationReport(
        operation_id=operation_id,
        status=finished.status if finished else "unknown",
        source=minted.told_source,
        workspace_id=minted.workspace_id,
        check_only=minted.check_only,
        created_at=ledger[0].at,
        finished_at=ledger[1].at if finished else None,
        operation_key=minted.operation_key,
        work_id=minted.work_id,
        error=_error(finished),
        files=tuple(planned.path for planned in minted.plan) or None,
        changes=changes or None,
        findings=(finished.findings or None) if finished else None,
        events=tuple(ledger),
        reverts=minted.reverts,
        also_reverts=minted.also_reverts,
        reverted_by=reverted_by,
    )


def changes_told(minted: OperationMinted, finished: OperationFinished | None) -> tuple[FileChange, ...]:
    """Return the `changes` of an operation: after-versions only where they came about. Source: contract B3.6, A3."""
    if finished is None or finished.status in ("rejected", "unknown"):
        return ()
    is_after_known = finished.status in ("applied", "checked")
    return tuple(change_of(planned, is_after_known=is_after_known) for planned in minted.plan)


def _error(finished: OperationFinished | None) -> ResultError | None:
    if finished is None or finished.fault is None:
        return None
    return ResultError(code=finished.fault.code.value, message=finished.fault.message)
