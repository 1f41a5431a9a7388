"""What a model test needs of the world: two gateways over one log and one workspace, a clock, and a way to die."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from codespace_es.vocabulary.answer import Command
from codespace_es.vocabulary.event import Channel


@dataclass(frozen=True, slots=True)
class Sight:
    """What the log alone says of a hold."""

    state: str
    """As clients know it."""
    has_arguments: bool
    """Its arguments are stored."""


class Gateways(Protocol):
    """Servers by name over one log; their workspace is called `demo`. `adapters.testing.ScratchGateways` is real."""

    def start(self, name: str, policy: Mapping[str, Any]) -> None:
        """Start the server, with the keys that a workspace has in a configuration file."""
        ...

    def stop(self, name: str) -> None:
        """End it in good order; what it ran ends with it."""
        ...

    def ask(self, name: str, command: Command, channel: Channel = "mcp") -> dict[str, Any]:
        """Return the answer on the wire, or the refusal."""
        ...

    def ask_to_death(self, name: str, command: Command, moment: int) -> dict[str, Any] | None:
        """Ask, and let the server die at the `moment`-th fault point from now (from 1).

        Return the answer if it came first: then the server lives on. None: it is dead, and has to be started again.
        """
        ...

    def text(self, path: str) -> str:
        """Return what a file of the workspace holds; empty if there is none."""
        ...

    def write(self, path: str, text: str) -> None:
        """Write a file of the workspace, from outside."""
        ...

    def look(self, approval_id: str) -> Sight:
        """Return what the log says of a hold."""
        ...

    def step_clock(self, seconds: float) -> None:
        """Move the wall clock of every server."""
        ...

    def audit(self) -> Sequence[str]:
        """Return what an audit of the whole log finds wrong."""
        ...

    def close(self) -> None:
        """End what lives and remove what was written."""
        ...
