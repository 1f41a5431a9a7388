"""An operation: one patch, from the decision to write to what came of it. Minted → Finished → Reverted.

Invariants: at most one `minted` and one `finished`, in this order; `applied` is never decided from memory but from
what the disk says; a refusal is minted and finished in one append. Source: event catalogue, *operation*.
"""

from dataclasses import dataclass
from typing import Literal, assert_never, get_args

from pydantic import Field

from codespace_es.vocabulary.decider import Decider, refuse_event
from codespace_es.vocabulary.errors import CodespaceError, ErrorCode
from codespace_es.vocabulary.event import Body, Digest, Event, Fault, Version
from codespace_es.vocabulary.file_change import FileFinding, PlannedFile
from codespace_es.vocabulary.identifiers import ActionId, ApprovalId, OperationId, WorkId, WorkspaceKey

OperationSource = Literal["apply_patch", "ast_edit", "revert", "custom_tool"]
OperationStatus = Literal["checked", "applied", "rejected", "failed_rolled_back", "failed_partial", "unknown"]

# Events


class OperationMinted(Event):
    """A patch was decided: everything that is about to be done, before any of it is."""

    TOPIC = "operation.minted.v1"

    workspace_key: WorkspaceKey = Field(description="Identity of the workspace.")
    workspace_id: str = Field(description="Its name in the server's configuration.")
    source: OperationSource = Field(description="Which tool asked.")
    source_tool_name: str | None = Field(default=None, description="Name of the custom tool.")
    check_only: bool = Field(description="A preview: nothing will be written.")
    fingerprint: Digest = Field(description="Digest of the request, by which a repeat is recognised.")
    operation_key: str | None = Field(default=None, description="The caller's idempotency key.")
    work_id: WorkId | None = Field(default=None, description="The work it belongs to.")
    approval_id: ApprovalId | None = Field(default=None, description="The hold that was resumed.")
    action_id: ActionId | None = Field(default=None, description="The pending action that was resolved.")
    reverts: OperationId | None = Field(default=None, description="The operation that this one undoes.")
    also_reverts: tuple[OperationId, ...] | None = Field(
        default=None, description="Older operations that it undoes at the same blow, newest first."
    )
    request: Body = Field(description="Patch text.")
    expected_versions: dict[str, Version] = Field(default_factory=dict, description="What the caller had seen.")
    plan: tuple[PlannedFile, ...] = Field(default=(), description="Net effect in hunk order; empty for a refusal.")
    made_directories: tuple[str, ...] = Field(default=(), description="Directories the plan makes, parents first.")
    removed_directories: tuple[str, ...] = Field(
        default=(), description="Directories an undo removes when empty, parents first."
    )

    @property
    def told_source(self) -> str:
        """What asked, for readers: a custom tool by the name it gives itself, unless that is one of ours."""
        is_told = self.source_tool_name is not None and self.source_tool_name not in get_args(OperationSource)
        return self.source_tool_name if is_told and self.source_tool_name else self.source

    @property
    def undone(self) -> tuple[OperationId, ...]:
        """The operations that this one undoes, newest first."""
        return () if self.reverts is None else (self.reverts, *(self.also_reverts or ()))


class OperationFinished(Event):
    """What came of it, as the disk says."""

    TOPIC = "operation.finished.v1"

    status: OperationStatus = Field(description="`applied` only after every file was re-read from disk.")
    reason: Literal["recovered", "unknown"] | None = Field(default=None, description="How a crash was settled.")
    fault: Fault | None = Field(default=None, description="The error it ended with.")
    result: Body | None = Field(default=None, description="The answer, exactly when it was a result.")
    findings: tuple[FileFinding, ...] = Field(
        default=(), description="What was found where it didn't simply succeed; none where its host was taken over."
    )
    is_swap_atomic: bool = Field(default=True, description="False where the file system has no atomic exchange.")


class OperationReverted(Event):
    """A later operation has undone this one."""

    TOPIC = "operation.reverted.v1"

    by: OperationId = Field(description="The operation that undid it.")


# State


@dataclass(frozen=True, slots=True)
class Unminted:
    """Nothing was decided yet."""


@dataclass(frozen=True, slots=True)
class Minted:
    """Decided; what came of it isn't recorded yet."""

    minted: OperationMinted


@dataclass(frozen=True, slots=True)
class Finished:
    """Over, with a status."""

    minted: OperationMinted
    finished: OperationFinished


@dataclass(frozen=True, slots=True)
class Reverted:
    """Over, and undone since."""

    minted: OperationMinted
    finished: OperationFinished
    by: OperationId


OperationState = Unminted | Minted | Finished | Reverted


# Evolve


def evolve(state: OperationState, event: Event) -> OperationState:
    """Return the state after `event`."""
    match event:
        case OperationMinted() if isinstance(state, Unminted):
            return Minted(event)
        case OperationFinished() if isinstance(state, Minted):
            return Finished(state.minted, event)
        case OperationReverted() if isinstance(state, Finished):
            return Reverted(state.minted, state.finished, event.by)
        case _:
            raise refuse_event(state, event)


# Decide


@dataclass(frozen=True, slots=True)
class MintOperation:
    """Decide to write what the event says."""

    minted: OperationMinted


@dataclass(frozen=True, slots=True)
class MintFinishedOperation:
    """Record a refusal or a preview: minted and finished at once, since nothing is written."""

    minted: OperationMinted
    finished: OperationFinished


@dataclass(frozen=True, slots=True)
class FinishOperation:
    """Record what came of it."""

    finished: OperationFinished


@dataclass(frozen=True, slots=True)
class MarkReverted:
    """Record that `by` has undone it."""

    by: OperationId


OperationCommand = MintOperation | MintFinishedOperation | FinishOperation | MarkReverted


def decide(state: OperationState, command: OperationCommand) -> list[Event]:
    """Return the events that `command` leads to.

    Raises:
        CodespaceError: REVERT_CONFLICT if there is nothing to undo, or it is undone already.
    """
    match command:
        case MintOperation(minted):
            assert isinstance(state, Unminted), "an operation id is minted once"
            return [minted]
        case MintFinishedOperation(minted, finished):
            assert isinstance(state, Unminted), "an operation id is minted once"
            assert finished.status in ("checked", "rejected"), "only what writes nothing is finished at once"
            return [minted, finished]
        case FinishOperation(finished):
            assert isinstance(state, Minted), "finished exactly once, after minted"
            return [finished]
        case MarkReverted(by):
            require_revertible(state)
            return [OperationReverted(by=by)]
        case _:
            assert_never(command)


def require_revertible(state: OperationState) -> Finished:
    """Return `state` if the operation was applied and not undone yet.

    Raises:
        CodespaceError: REVERT_CONFLICT, saying why it can't be undone.
    """
    match state:
        case Finished(_, finished) if finished.status == "applied":
            return state
        case Finished(_, finished):
            reason = f"its status is {finished.status}, so there is nothing to undo"
        case Reverted(by=by):
            raise CodespaceError(
                ErrorCode.REVERT_CONFLICT, f"It was undone already, by {by}.", detail={"reverted_by": by}
            )
        case Minted():
            reason = "it isn't finished"
        case Unminted():
            reason = "it was never minted"
        case _:
            assert_never(state)
    raise CodespaceError(ErrorCode.REVERT_CONFLICT, f"It can't be undone: {reason}.")


OPERATION: Decider[OperationState, OperationCommand] = Decider(Unminted(), evolve, decide)
