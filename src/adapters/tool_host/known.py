"""What is known of the operator's tools: which are there, which were, and what is wrong with the rest."""

import logging
from dataclasses import dataclass

from adapters.tool_host.messages import Loaded, Refused, SaidTool
from adapters.tool_host.sources import Source
from codespace_es.ports.custom_tools import SourceFault, ToolCatalogue, ToolSpecification
from codespace_es.vocabulary import limits

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Known:
    """A tool that is there."""

    specification: ToolSpecification
    source: Source
    timeout: float


class KnownTools:
    """Tools, registered actions and faults, by name; of two with one name the first stands."""

    def __init__(self, reserved: frozenset[str]) -> None:
        self._reserved = reserved
        self._tools: dict[str, Known] = {}
        self._gone: dict[str, str] = {}
        """Tools that were there: name -> why they aren't."""
        self._actions: dict[str, Source] = {}
        self._gone_actions: dict[str, str] = {}
        self._faults: dict[str, list[str]] = {}
        self._suspicions: dict[str, str] = {}

    def catalogue(self) -> ToolCatalogue:
        """Return all of it, as the port has it."""
        return ToolCatalogue(
            tuple(self._tools[name].specification for name in sorted(self._tools)),
            frozenset(self._gone),
            (
                *(SourceFault(source, message) for source, told in self._faults.items() for message in told),
                *(SourceFault(source, message) for source, message in self._suspicions.items()),
            ),
        )

    def find(self, name: str) -> Known | None:
        """Return a tool that is there."""
        return self._tools.get(name)

    def why_gone(self, name: str) -> str:
        """Return why a tool isn't there, as a clause."""
        return self._gone.get(name, "there is no such tool")

    def owner_of_action(self, name: str) -> Source | None:
        """Return whose a registered action is."""
        return self._actions.get(name)

    def why_no_action(self, name: str) -> str:
        """Return why there is no such action, as a clause."""
        return self._gone_actions.get(name, "no custom tool registers it here")

    def seconds_of(self, source: Source) -> float:
        """Return how long callbacks of a source may take: as long as the slowest of its tools."""
        times = (each.timeout for each in self._tools.values() if each.source == source)
        return max(times, default=limits.TOOL_CALL_SECONDS_DEFAULT)

    def take(self, source: Source, said: Loaded | Refused) -> None:
        """Keep what a source gives. Loaded again, it may give something else."""
        self._forget(source)
        self._faults.pop(source.name, None)
        if isinstance(said, Refused):
            self.note(source.name, said.problem)
            return
        for problem in said.problems:
            self.note(source.name, problem)
        for tool in said.tools:
            self._take_tool(source, tool)
        for action in said.actions:
            owner = self._actions.setdefault(action, source)
            if owner != source:
                self.note(source.name, f"an action is registered as {action!r} already, by {owner.name}.")

    def lose(self, source: Source, reason: str) -> None:
        """Let go of what a source gave."""
        self._gone.update((name, reason) for name, known in self._tools.items() if known.source == source)
        self._gone_actions.update((name, reason) for name, owner in self._actions.items() if owner == source)
        self._forget(source)
        self._suspicions.clear()  # it has been found out
        self.note(source.name, reason)

    def suspect(self, source: Source, message: str) -> None:
        """Tell that a source may have ended a process that others had too. It stays there."""
        logger.warning("Custom tools: %s: %s", source.name, message)
        self._suspicions[source.name] = message

    def note(self, source: str, message: str) -> None:
        """Keep a fault, and tell the server's log of it."""
        logger.warning("Custom tools: %s: %s", source, message)
        told = self._faults.setdefault(source, [])
        if message not in told:
            told.append(message)

    def _take_tool(self, source: Source, tool: SaidTool) -> None:
        if tool.name in self._reserved:
            self.note(source.name, f"its name {tool.name!r} is taken by a tool of the server.")
        elif tool.name in self._tools:
            owner = self._tools[tool.name].source.name
            self.note(source.name, f"its name {tool.name!r} is taken by a tool of {owner}; the first one stands.")
        else:
            self._tools[tool.name] = Known(_specification(tool, source), source, tool.timeout)

    def _forget(self, source: Source) -> None:
        self._tools = {name: known for name, known in self._tools.items() if known.source != source}
        self._actions = {name: owner for name, owner in self._actions.items() if owner != source}


def _specification(tool: SaidTool, source: Source) -> ToolSpecification:
    hints = tool.annotations
    is_read_only = hints.get("readOnlyHint", False)
    return ToolSpecification(
        name=tool.name,
        label=tool.label,
        description=tool.description,
        parameters=tool.parameters,
        source=source.name,
        is_read_only=is_read_only,
        is_destructive=hints.get("destructiveHint", not is_read_only),
        is_idempotent=hints.get("idempotentHint", False),
        is_open_world=hints.get("openWorldHint", True),
    )
