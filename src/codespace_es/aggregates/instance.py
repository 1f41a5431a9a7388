"""An instance: one server process. Running → Stopped, or → Recovered by whoever cleaned up after its death.

If its host is lost, → TakenOver by the operator.

Its OS lock is taken before `instance.started`. After any of these it can't append anything, so a late
append of one that was declared dead is refused. Source: event catalogue, *instance*.
"""

from dataclasses import dataclass
from typing import Literal, assert_never

from pydantic import Field

from codespace_es.vocabulary.decider import Decider, refuse_event
from codespace_es.vocabulary.errors import ErrorCode
from codespace_es.vocabulary.event import Digest, Event

# Events


class InstanceStarted(Event):
    """A server process has begun; it holds its lock."""

    TOPIC = "instance.started.v1"

    software: str = Field(description="Name/version.")
    machine_id: str = Field(description="Which machine.")
    host: str = Field(description="Its host name.")
    boot_id: str = Field(description="Which boot of it.")
    pid: int = Field(description="Process id.")
    pid_namespace: int = Field(description="Inode of its pid namespace.")
    started_ticks: int = Field(description="Start of the process, clock ticks since boot.")
    transport: Literal["stdio", "http", "cli"] = Field(description="Whom it serves.")
    configuration: Digest = Field(description="Digest of the effective configuration.")
    lock_directory: str | None = Field(
        default=None, description="Names the directory of its lock: by another one, nobody can tell whether it lives."
    )


class InstanceStopped(Event):
    """It has ended in good order."""

    TOPIC = "instance.stopped.v1"

    reason: Literal["eof", "signal", "output_closed", "done", "fault"] = Field(description="Why.")


class InstanceCallRefused(Event):
    """A call was refused before anything was minted for it."""

    TOPIC = "instance.call_refused.v1"

    tool: str = Field(description="The tool that was called.")
    code: ErrorCode = Field(description="The refusal.")
    workspace_id: str | None = Field(default=None, description="The workspace it named.")
    arguments: Digest = Field(description="Digest of its arguments.")


class InstanceRecovered(Event):
    """Another instance has closed all that this dead one had left open."""

    TOPIC = "instance.recovered.v1"

    operations_closed: int = Field(description="Patches settled.")
    processes_closed: int = Field(description="Commands settled.")
    resolves_closed: int = Field(description="Resolves settled.")


class InstanceTakenOver(Event):
    """An operator has declared its host lost: it may never append again, and what it had open is closed unseen."""

    TOPIC = "instance.taken_over.v1"

    reason: str = Field(description="What the operator says of it.")


# State


@dataclass(frozen=True, slots=True)
class Unstarted:
    """Not there yet."""


@dataclass(frozen=True, slots=True)
class Running:
    """Alive as far as the log knows; the lock decides."""

    started: InstanceStarted


@dataclass(frozen=True, slots=True)
class Ended:
    """Stopped, or recovered by another."""

    started: InstanceStarted


InstanceState = Unstarted | Running | Ended

# Evolve


def evolve(state: InstanceState, event: Event) -> InstanceState:
    """Return the state after `event`."""
    match event:
        case InstanceStarted() if isinstance(state, Unstarted):
            return Running(event)
        case InstanceCallRefused() if isinstance(state, Running):
            return state
        case InstanceStopped() | InstanceRecovered() | InstanceTakenOver() if isinstance(state, Running):
            return Ended(state.started)
        case _:
            raise refuse_event(state, event)


# Decide


@dataclass(frozen=True, slots=True)
class StartInstance:
    """Begin."""

    started: InstanceStarted


@dataclass(frozen=True, slots=True)
class StopInstance:
    """End in good order."""

    stopped: InstanceStopped


@dataclass(frozen=True, slots=True)
class RecordRefusal:
    """Leave a trace of a call that was refused."""

    refused: InstanceCallRefused


@dataclass(frozen=True, slots=True)
class RecoverInstance:
    """Close the story of a dead one; decided only with its lock in hand."""

    recovered: InstanceRecovered


@dataclass(frozen=True, slots=True)
class TakeOverInstance:
    """Shut out one whose host is lost."""

    taken_over: InstanceTakenOver


InstanceCommand = StartInstance | StopInstance | RecordRefusal | RecoverInstance | TakeOverInstance


def decide(state: InstanceState, command: InstanceCommand) -> list[Event]:
    """Return the events that `command` leads to; none for an instance that has ended already."""
    match command:
        case StartInstance(started):
            assert isinstance(state, Unstarted), "an instance starts once"
            return [started]
        case StopInstance(stopped):
            return [stopped] if isinstance(state, Running) else []
        case RecordRefusal(refused):
            return [refused] if isinstance(state, Running) else []
        case RecoverInstance(recovered):
            return [recovered] if isinstance(state, Running) else []
        case TakeOverInstance(taken_over):
            return [taken_over] if isinstance(state, Running) else []
        case _:
            assert_never(command)


INSTANCE: Decider[InstanceState, InstanceCommand] = Decider(Unstarted(), evolve, decide)
