"""A process: one command that was started, and how it ended. Running → Exited; or NotStarted, which opens and closes.

Invariants: `process.spawned` is durable while the child still waits at its gate, so without it nothing ever ran; an
exit code only with `exited`, a signal only with `signaled`; nothing follows the exit; the first end requested is the
cause. Source: event catalogue, *process*; decisions 17 to 23.
"""

from dataclasses import dataclass
from typing import Literal, Self, assert_never

from pydantic import BaseModel, ConfigDict, Field, model_validator

from codespace_es.vocabulary.decider import Decider, refuse_event
from codespace_es.vocabulary.errors import CodespaceError, ErrorCode
from codespace_es.vocabulary.event import Body, Digest, Event, Fault
from codespace_es.vocabulary.identifiers import ApprovalId, WorkId, WorkspaceKey

Termination = Literal["exited", "signaled", "timeout", "terminated", "unknown"]
EndCause = Literal["caller", "timeout", "stop", "shutdown"]
SandboxKind = Literal["bubblewrap", "landlock", "none"]

# Events


class CommandRequest(BaseModel):
    """What was asked for, and under what it runs."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    workspace_key: WorkspaceKey = Field(description="Identity of the workspace.")
    workspace_id: str = Field(description="Its name in the server's configuration.")
    argv: Body = Field(description="JSON list of the arguments.")
    command_line: str = Field(max_length=200, description="Shell-quoted, cut at 200 characters, for people.")
    tty: bool = Field(description="It has a terminal.")
    stdin: Literal["pipe", "null"] = Field(description="Where its input comes from.")
    timeout_ms: int = Field(description="Time limit; 0: none.")
    environment_names: tuple[str, ...] = Field(description="Names of its environment variables, never their values.")
    sandbox: SandboxKind = Field(description="What confines it.")
    network: Literal["restricted", "enabled"] = Field(description="The workspace's network policy.")
    is_network_enforced: bool = Field(description="The policy is held by the sandbox, not a label.")
    fingerprint: Digest = Field(description="Digest of the request, by which a repeat is recognised.")
    operation_key: str | None = Field(default=None, description="The caller's idempotency key.")
    work_id: WorkId | None = Field(default=None, description="The work it belongs to.")
    approval_id: ApprovalId | None = Field(default=None, description="The hold that was resumed.")


class ProcessSpawned(Event):
    """A child waits at its gate. Only after this is durable may the program run."""

    TOPIC = "process.spawned.v1"

    request: CommandRequest = Field(description="What is about to run.")
    pid: int = Field(description="Process id of the child.")
    started_ticks: int = Field(description="Its start, clock ticks since boot: with the pid, its identity.")
    boot_id: str = Field(description="Which boot.")
    pid_namespace: int = Field(description="Inode of the pid namespace.")
    rows: int | None = Field(default=None, description="Terminal rows.")
    columns: int | None = Field(default=None, description="Terminal columns.")


class ProcessNotStarted(Event):
    """Nothing was started, certainly."""

    TOPIC = "process.not_started.v1"

    request: CommandRequest = Field(description="What was asked for.")
    fault: Fault = Field(description="Why not.")
    errno: int | None = Field(default=None, description="The system's number for it.")


class ProcessInputSent(Event):
    """Something was written to its input. Never what."""

    TOPIC = "process.input_sent.v1"

    size_bytes: int = Field(ge=0, description="How much.")
    is_eof: bool = Field(description="The input was closed behind it.")
    mac: str = Field(description="HMAC-SHA-256 under a key of the data directory, hex.")


class ProcessResized(Event):
    """Its terminal has another size."""

    TOPIC = "process.resized.v1"

    rows: int = Field(description="Rows.")
    columns: int = Field(description="Columns.")


class ProcessEndRequested(Event):
    """Somebody wants it to end. The first one wins."""

    TOPIC = "process.end_requested.v1"

    cause: EndCause = Field(description="Who wants it.")
    signal: int = Field(description="The signal it is asked with.")
    grace_ms: int = Field(description="After this it is killed.")


class ProcessExited(Event):
    """It and all its descendants are gone."""

    TOPIC = "process.exited.v1"

    termination: Termination = Field(description="How it ended, as far as can be known.")
    exit_code: int | None = Field(default=None, description="Only with `exited`.")
    signal: int | None = Field(default=None, description="Only with `signaled`.")
    output_bytes: int = Field(description="All it ever printed.")
    retained_from: int = Field(description="First byte of the tail that is kept.")
    output_tail: Body | None = Field(default=None, description="The last of its output.")
    output_head: Body | None = Field(default=None, description="The first of it, when the tail doesn't reach there.")
    duration_ms: int | None = Field(default=None, description="From go to exit.")
    swept: int = Field(description="Descendants that had to be ended.")
    is_output_cut: bool = Field(description="A descendant held the output beyond the grace.")

    @model_validator(mode="after")
    def _is_consistent(self) -> Self:
        assert (self.exit_code is not None) == (self.termination == "exited"), "an exit code exactly with `exited`"
        assert (self.signal is not None) == (self.termination == "signaled"), "a signal exactly with `signaled`"
        return self


# State


@dataclass(frozen=True, slots=True)
class Unspawned:
    """Nothing yet."""


@dataclass(frozen=True, slots=True)
class Running:
    """Started; its end isn't recorded yet."""

    spawned: ProcessSpawned
    end_requested: ProcessEndRequested | None = None


@dataclass(frozen=True, slots=True)
class Exited:
    """Over."""

    spawned: ProcessSpawned
    exited: ProcessExited


@dataclass(frozen=True, slots=True)
class NotStarted:
    """Never began."""

    refused: ProcessNotStarted


ProcessState = Unspawned | Running | Exited | NotStarted

# Evolve


def evolve(state: ProcessState, event: Event) -> ProcessState:
    """Return the state after `event`."""
    match event:
        case ProcessSpawned() if isinstance(state, Unspawned):
            return Running(event)
        case ProcessNotStarted() if isinstance(state, Unspawned):
            return NotStarted(event)
        case ProcessInputSent() | ProcessResized() if isinstance(state, Running):
            return state
        case ProcessEndRequested() if isinstance(state, Running):
            return Running(state.spawned, state.end_requested or event)
        case ProcessExited() if isinstance(state, Running):
            return Exited(state.spawned, event)
        case _:
            raise refuse_event(state, event)


# Decide


@dataclass(frozen=True, slots=True)
class RecordSpawn:
    """A gated child is there: record it before it may run."""

    spawned: ProcessSpawned


@dataclass(frozen=True, slots=True)
class RecordNoStart:
    """Nothing could be started."""

    refused: ProcessNotStarted


@dataclass(frozen=True, slots=True)
class RecordInput:
    """Something is about to be written to its input."""

    sent: ProcessInputSent


@dataclass(frozen=True, slots=True)
class RecordResize:
    """Its terminal gets another size."""

    resized: ProcessResized


@dataclass(frozen=True, slots=True)
class RequestEnd:
    """End it."""

    requested: ProcessEndRequested


@dataclass(frozen=True, slots=True)
class RecordExit:
    """It is gone."""

    exited: ProcessExited


ProcessCommand = RecordSpawn | RecordNoStart | RecordInput | RecordResize | RequestEnd | RecordExit


def decide(state: ProcessState, command: ProcessCommand) -> list[Event]:
    """Return the events that `command` leads to; none for an end that is requested again or of what has ended.

    Raises:
        CodespaceError: PROCESS_NOT_RUNNING for input or a resize after the end.
    """
    match command:
        case RecordSpawn(spawned):
            assert isinstance(state, Unspawned), "a process id is spawned once"
            return [spawned]
        case RecordNoStart(refused):
            assert isinstance(state, Unspawned), "a process id is spawned once"
            return [refused]
        case RecordInput(sent):
            _require_running(state)
            return [sent]
        case RecordResize(resized):
            _require_running(state)
            return [resized]
        case RequestEnd(requested):
            is_first = isinstance(state, Running) and state.end_requested is None
            return [requested] if is_first else []
        case RecordExit(exited):
            return [exited] if isinstance(state, Running) else []
        case _:
            assert_never(command)


def _require_running(state: ProcessState) -> None:
    if not isinstance(state, Running):
        raise CodespaceError(ErrorCode.PROCESS_NOT_RUNNING, "The process has ended.")


PROCESS: Decider[ProcessState, ProcessCommand] = Decider(Unspawned(), evolve, decide)
