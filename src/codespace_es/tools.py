"""What the author of a custom tool imports: the shapes that go in and out of a tool file.

A tool file has `create_tool(api)`, sync or async, which returns one tool or a list of them. A tool is a `Tool`, or any
object or mapping with the same fields. Files run in a process of their own, apart from the server; whatever they ask
of `api` is checked by the server as if a client had called. Source: docs/custom-tools.md.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from codespace_es.vocabulary.errors import CodespaceError, ErrorCode

if TYPE_CHECKING:
    from pydantic import BaseModel  # only for those whose tools have models: a process of tools starts without it

__all__ = [
    "Api", "CodespaceError", "Context", "ErrorCode", "ExecOutcome", "File", "Match", "PatchOutcome", "Tool",
    "ToolResult", "Workspace",
]


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What `execute`, `apply` and `reject` return; a plain string is the same as `ToolResult(string)`."""

    content: str
    """For the model to read."""
    details: Any = None
    """JSON, for programs."""
    is_error: bool = False
    """The call is answered as failed. From an `apply`: it is consumed as failed, nothing it staged is written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """What a call or a callback is about."""

    call_id: str
    workspace_id: str
    work_id: str | None = None
    action_id: str | None = None
    """Of the pending action; in callbacks alone, as everything below."""
    label: str | None = None
    payload: Any = None
    """What was pushed for a registered action."""
    extra: Any = None
    """What the caller of `resolve` handed over."""


Execute = Callable[[str, Any, Context], "Awaitable[ToolResult | str] | ToolResult | str"]
"""`execute(call_id, params, context)`; `params` is an instance of the model, or a dictionary for a JSON schema."""

Callback = Callable[..., Any]
"""`callback(reason)` or `callback(reason, context)`, async or not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """One tool."""

    name: str
    """Letters, digits, `_` and `-`, at most 64; no name of another tool."""
    label: str
    """A short title for people."""
    description: str
    """What it does and when to call it: a model reads this."""
    parameters: "type[BaseModel] | Mapping[str, Any]"
    """A pydantic model, or a JSON schema of type object. The server adds `workspace_id` and `work_id`."""
    execute: Execute
    annotations: Mapping[str, Any] = field(default_factory=dict)
    """MCP hints such as `readOnlyHint`: without it, the tool needs a workspace that may be written."""
    timeout: float | None = None
    """Seconds that one call may take; 120 without it, 600 at most."""


@dataclass(frozen=True, slots=True)
class File:
    """A whole file."""

    path: str
    text: str
    version: str
    """For `expected_versions` of a patch."""
    is_lossy: bool
    """Bytes that aren't UTF-8 were replaced in `text`."""


@dataclass(frozen=True, slots=True)
class Match:
    """A line that matches."""

    path: str
    line: int
    """1-based."""
    column: int
    """1-based, in code points."""
    text: str


@dataclass(frozen=True, slots=True)
class PatchOutcome:
    """A patch that was applied, previewed, or staged."""

    status: str
    """`applied`, `checked` (a preview), or `staged` (within an apply: written together when it returns)."""
    files: tuple[str, ...]
    operation_id: str | None = None
    diff: str | None = None


@dataclass(frozen=True, slots=True)
class ExecOutcome:
    """A command that has ended."""

    process_id: str
    termination: str
    """`exited`, `signaled`, `timeout`, `terminated` or `unknown`."""
    exit_code: int | None
    output: str
    """Of stdout and stderr together, the first mebibyte."""
    is_output_cut: bool

    @property
    def is_success(self) -> bool:
        """It exited by itself, with 0."""
        return self.termination == "exited" and self.exit_code == 0


class Workspace(Protocol):
    """Reads in the workspace of the call, as `read`, `find` and `search` do: never outside its root."""

    async def read(self, path: str) -> File:
        """Return a whole file of at most 4 MiB. Raises CodespaceError."""
        ...

    async def find(self, glob: str | None = None, *, include_ignored: bool = False) -> list[str]:
        """Return the paths that match, sorted. Raises CodespaceError."""
        ...

    async def search(
        self, pattern: str, *, regex: bool = False, glob: str | None = None, case_sensitive: bool = True,
        limit: int = 1_000,
    ) -> list[Match]:
        """Return matching lines in order of path and line. Raises CodespaceError."""
        ...


class Api(Protocol):
    """What `create_tool` is given. All but `logger` and `register_action` work only while a tool of the file runs."""

    workspace: Workspace
    logger: Any
    """A `logging.Logger` that writes to the server's log, on standard error."""

    def register_action(self, name: str, apply: Callback, reject: Callback | None = None) -> None:
        """Give pending actions callbacks that survive a restart: they are found by `name`, and get a JSON payload.

        For `create_tool` alone. Raises ValueError for a bad name or one that the file has registered already.
        """
        ...

    async def apply_patch(
        self, patch: str, *, expected_versions: Mapping[str, str] | None = None, operation_key: str | None = None,
        check_only: bool = False,
    ) -> PatchOutcome:
        """Apply a V4A patch, all or nothing; within an apply, stage it.

        Raises:
            CodespaceError: refused, held (APPROVAL_REQUIRED), or failed: nothing but `applied` is success.
        """
        ...

    async def exec(
        self, argv: Sequence[str], timeout: float | None = None  # noqa: ASYNC109 - a limit of the command, not of the wait
    ) -> ExecOutcome:
        """Run a command in the workspace's root to its end, without input; `timeout` in seconds.

        A command that fails isn't an error: look at `is_success`.

        Raises:
            CodespaceError: it was refused, held (APPROVAL_REQUIRED), or couldn't be started.
        """
        ...

    async def push_pending_action(  # noqa: PLR0917 - as authors know it
        self,
        label: Any = None,
        apply: Callback | str | None = None,
        reject: Callback | None = None,
        details: Any = None,
        source_tool_name: str = "custom_tool",
        payload: Any = None,
    ) -> str:
        """Stage an action, to be applied or discarded by `resolve`; return its id.

        Instead of the arguments, one mapping or object with `label, apply, reject, details, sourceToolName, payload`
        may be given. `apply` is a callable, which is lost with the process of the tools, or the name of a registered
        action, which survives.

        Raises:
            ValueError: label or apply is missing or unusable.
            CodespaceError: PENDING_STORE_UNAVAILABLE where nothing can be staged.
        """
        ...
