"""Custom tools: the operator's own code, loaded and run apart from this process, behind what it may ask for.

Whatever the code does, the server and the other tools go on: a source that can't be loaded is told of by name, a call
has its time limit, and what runs too long is ended. Source: decision 32; docs/custom-tools.md.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from codespace_es.vocabulary.errors import CodespaceError, ErrorCode
from codespace_es.vocabulary.event import Caller, Version
from codespace_es.vocabulary.identifiers import ActionId

Phase = Literal["execute", "apply", "reject"]


@dataclass(frozen=True, slots=True)
class ToolSpecification:
    """A tool as its author describes it, checked."""

    name: str
    label: str
    description: str
    parameters: Mapping[str, Any]
    """A JSON schema of type object, without what the server adds."""
    source: str
    """The file or entry point that it comes from."""
    is_read_only: bool = False
    is_destructive: bool = True
    is_idempotent: bool = False
    is_open_world: bool = True


@dataclass(frozen=True, slots=True)
class SourceFault:
    """Why a source, or one tool of it, isn't there."""

    source: str
    message: str
    """One sentence."""


@dataclass(frozen=True, slots=True)
class ToolCatalogue:
    """What is there, by name, and what isn't."""

    tools: tuple[ToolSpecification, ...] = ()
    gone: frozenset[str] = frozenset()
    """Names of tools that were there."""
    faults: tuple[SourceFault, ...] = ()


@dataclass(frozen=True, slots=True)
class CallSubject:
    """On whose behalf code of a tool runs: what it asks for is judged by it."""

    call_id: str
    workspace_id: str
    work_id: str | None
    tool: str
    """Name of the tool; for a callback, the `source_tool_name` of its action."""
    phase: Phase
    caller: Caller
    action_id: ActionId | None = None
    """Of the pending action whose callback it is."""


@dataclass(frozen=True, slots=True)
class ToolOutcome:
    """What a tool returned."""

    content: str
    details: Any = None
    is_error: bool = False


class ToolServices(Protocol):
    """What the code of one call may ask for. Nothing of it gets past what a client could do itself."""

    @property
    def patches(self) -> tuple[str, ...]:
        """Patches that an `apply` has staged, oldest first."""
        ...

    @property
    def expected_versions(self) -> Mapping[str, Version]:
        """What it expects of files when they are written."""
        ...

    @property
    def is_external(self) -> bool:
        """It has run a command, or tried to: running it again would repeat that."""
        ...

    async def serve(self, method: str, parameters: Mapping[str, Any]) -> dict[str, Any]:
        """Return the JSON that answers one request. Raises CodespaceError."""
        ...


@dataclass(frozen=True, slots=True)
class OrphanedAction:
    """A pending action whose callbacks have gone with their process."""

    action_id: str
    workspace_id: str
    work_id: str | None


ServicesOf = Callable[[CallSubject], ToolServices]


class CustomTools(Protocol):
    """The tools of this server's operator."""

    async def catalogue(self) -> ToolCatalogue:
        """Return what is there; waits a bounded time until everything was loaded."""
        ...

    def schema_of(self, name: str) -> Mapping[str, Any] | None:
        """Return the schema of a tool's own arguments, if that is known by now."""
        ...

    async def execute(
        self, subject: CallSubject, parameters: Mapping[str, Any], services: ToolServices
    ) -> ToolOutcome:
        """Run a tool. Cancelled, it is asked to stop, and ended at its time limit in any case.

        Raises:
            CodespaceError: INVALID_ARGUMENT by its schema; TIMEOUT; TOOL_FAILED; whatever the code let through.
        """
        ...

    async def close(self) -> None:
        """End every process of tools, for good; what runs there fails as if its process had ended by itself."""
        ...


class NoCustomTools:
    """For a server without custom tools."""

    async def catalogue(self) -> ToolCatalogue:
        """Return nothing."""
        return ToolCatalogue()

    def schema_of(self, name: str) -> Mapping[str, Any] | None:  # noqa: ARG002 - the port's
        """Return None."""
        return None

    async def execute(
        self, subject: CallSubject, parameters: Mapping[str, Any], services: ToolServices  # noqa: ARG002 - the port's
    ) -> ToolOutcome:
        """Refuse. Raises TOOL_FAILED."""
        raise CodespaceError(ErrorCode.TOOL_FAILED, f"There is no custom tool {subject.tool!r} here.")

    async def close(self) -> None:
        """Do nothing."""
