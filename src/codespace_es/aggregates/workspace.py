"""A workspace: which directory its key stands for. Unbound → Bound, bound again when name or directory changed.

Recovery acts only where the recorded root, device and inode are what is there now: a replaced directory is another
one. Source: event catalogue, *workspace*; decision 0.
"""

from dataclasses import dataclass

from pydantic import Field

from codespace_es.vocabulary.decider import Decider, refuse_event
from codespace_es.vocabulary.event import Event

# Events


class WorkspaceBound(Event):
    """The key stands for this directory; recorded with the first mutation."""

    TOPIC = "workspace.bound.v1"

    workspace_id: str = Field(description="Its name in the server's configuration.")
    root: str = Field(description="Absolute path.")
    machine_id: str = Field(description="The machine that has it.")
    device: int = Field(description="Device of the directory.")
    inode: int = Field(description="Inode of the directory.")


# State


@dataclass(frozen=True, slots=True)
class Unbound:
    """Nothing was ever changed in it."""


@dataclass(frozen=True, slots=True)
class Bound:
    """The directory as last recorded."""

    binding: WorkspaceBound


WorkspaceState = Unbound | Bound

# Evolve


def evolve(state: WorkspaceState, event: Event) -> WorkspaceState:
    """Return the state after `event`."""
    match event:
        case WorkspaceBound():
            return Bound(event)
        case _:
            raise refuse_event(state, event)


# Decide


@dataclass(frozen=True, slots=True)
class BindWorkspace:
    """Record the directory as it is now, if that is news."""

    binding: WorkspaceBound


def decide(state: WorkspaceState, command: BindWorkspace) -> list[Event]:
    """Return a binding, or nothing when it is known already."""
    if isinstance(state, Bound) and state.binding == command.binding:
        return []
    return [command.binding]


WORKSPACE: Decider[WorkspaceState, BindWorkspace] = Decider(Unbound(), evolve, decide)
