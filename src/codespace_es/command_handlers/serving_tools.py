"""What the code of a custom tool may ask for while a call of it runs: the same stories as a client's, judged alike.

- Reads are those of `read`, `find` and `search`; what can't be told whole is refused, since code doesn't read warnings.
- A patch or command of `execute` or `reject` is admitted, gated and held as a client's own. Where the operator wants
  approvals, it raises APPROVAL_REQUIRED, and what the hold lets run later is the patch or command, not the tool.
- Within an `apply`, a patch is staged: the resolve writes all of them as one operation. A command runs at once: the
  resolve was admitted, and granted where grants are wanted, with all that its apply does.

Source: decisions 31, 32; ADR 0014.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from anyio import to_thread
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from codespace_es.admission import admit
from codespace_es.command_handlers.calling_back import begin_effect
from codespace_es.command_handlers.patching import ApplyPatch, apply_patch, preview_patches
from codespace_es.command_handlers.reading import (
    FindFiles,
    ReadFile,
    SearchFiles,
    find_files,
    read_file,
    search_files,
)
from codespace_es.command_handlers.running_to_end import run_to_end
from codespace_es.command_handlers.stacks import Session
from codespace_es.command_handlers.staging import LoggedPendingActions
from codespace_es.invocation import ExecCommand, require_runnable
from codespace_es.ports.custom_tools import CallSubject
from codespace_es.ports.pending_actions import Closure, NewAction, PushedAction, RegisteredCallback
from codespace_es.ports.world import World
from codespace_es.vocabulary import limits
from codespace_es.vocabulary.errors import CodespaceError, ErrorCode
from codespace_es.vocabulary.event import Version


class _Asked(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class _Read(_Asked):
    path: str


class _Find(_Asked):
    glob: str | None = None
    include_ignored: bool = False


class _Search(_Asked):
    pattern: str
    regex: bool = False
    glob: str | None = None
    case_sensitive: bool = True
    limit: int = 1_000


class _Patch(_Asked):
    patch: str
    expected_versions: dict[str, str] = {}
    operation_key: str | None = None
    check_only: bool = False


class _Exec(_Asked):
    argv: list[str]
    timeout: float | None = Field(default=None, gt=0, le=limits.TOOL_CALL_SECONDS_MAX)


class _Push(_Asked):
    label: str
    action: str | None = None
    details: Any = None
    source_tool_name: str = "custom_tool"
    payload: Any = None


@dataclass(slots=True)
class CallServices:
    """What one call may ask for, and what it has done so far. Implements `ToolServices`."""

    world: World
    subject: CallSubject
    pushed: list[PushedAction] = field(default_factory=list)
    _staged: list[str] = field(default_factory=list)
    _expected_versions: Mapping[str, Version] = field(default_factory=dict)
    _is_external: bool = False

    @property
    def patches(self) -> tuple[str, ...]:
        """Patches that an `apply` has staged."""
        return tuple(self._staged)

    @property
    def expected_versions(self) -> Mapping[str, Version]:
        """What it expects of files when they are written."""
        return self._expected_versions

    @property
    def is_external(self) -> bool:
        """It has run a command, or tried to."""
        return self._is_external

    async def serve(self, method: str, parameters: Mapping[str, Any]) -> dict[str, Any]:
        """Return what answers one request. Raises INVALID_ARGUMENT, and the codes of what it stands for."""
        known = _METHODS.get(method)
        if known is None:
            raise CodespaceError(ErrorCode.INVALID_ARGUMENT, f"Custom tools can't ask for {method[:100]!r}.")
        try:
            asked = known[0].model_validate(parameters)
        except ValidationError as error:
            fault = error.errors(include_url=False, include_input=False)[0]
            name = ".".join(str(part) for part in fault["loc"])
            raise CodespaceError(
                ErrorCode.INVALID_ARGUMENT, f"{method}: {name} can't be used: {fault['msg']}.", detail={"field": name}
            ) from error
        return await known[1](self, asked)

    async def read(self, asked: _Read) -> dict[str, Any]:
        """Return a whole file; one that changes meanwhile is read again."""
        while True:
            command = ReadFile(workspace_id=self.subject.workspace_id, path=asked.path)
            window = first = await read_file(self.world, command, self.subject.caller)
            content, is_lossy, size = [first.content], first.content_lossy, first.byte_count
            while window.truncated and window.version == first.version:
                if size > limits.TOOL_FILE_BYTES_MAX:
                    raise CodespaceError(
                        ErrorCode.OUTPUT_LIMIT,
                        f"{asked.path} has more than the {limits.TOOL_FILE_BYTES_MAX} bytes that a tool can read.",
                    )
                command = command.model_copy(update={"offset": window.next_offset})
                window = await read_file(self.world, command, self.subject.caller)
                content.append(window.content)
                is_lossy, size = is_lossy or window.content_lossy, size + window.byte_count
            if window.version == first.version:
                return {
                    "path": first.path, "text": "".join(content), "version": first.version, "is_lossy": is_lossy,
                }

    async def find(self, asked: _Find) -> dict[str, Any]:
        """Return every path. Raises OUTPUT_LIMIT where not all can be told."""
        command = FindFiles(workspace_id=self.subject.workspace_id, **asked.model_dump())
        page = await find_files(self.world, command, self.subject.caller)
        if page.truncated:
            raise CodespaceError(
                ErrorCode.OUTPUT_LIMIT, f"More than {len(page.paths)} files match: narrow the glob.",
                detail={"field": "glob"},
            )
        return {"paths": list(page.paths)}

    async def search(self, asked: _Search) -> dict[str, Any]:
        """Return matches. Raises OUTPUT_LIMIT where a cap cut the search."""
        command = SearchFiles(workspace_id=self.subject.workspace_id, **asked.model_dump())
        page = await search_files(self.world, command, self.subject.caller)
        if page.incomplete:
            raise CodespaceError(
                ErrorCode.OUTPUT_LIMIT, "The search was cut by its time or its caps: narrow the glob.",
                detail={"field": "glob"},
            )
        return {"matches": [match.model_dump(include={"path", "line", "column", "text"}) for match in page.matches]}

    async def apply_patch(self, asked: _Patch) -> dict[str, Any]:
        """Return what the patch did. Raises as `apply_patch` does, and for every outcome but success."""
        try:
            command = ApplyPatch(
                workspace_id=self.subject.workspace_id, work_id=self.subject.work_id, **asked.model_dump()
            )
        except ValidationError as error:
            raise CodespaceError(
                ErrorCode.INVALID_ARGUMENT, "expected_versions has what no version looks like.",
                detail={"field": "expected_versions"},
            ) from error
        if self.subject.phase == "apply" and not asked.check_only:
            return await self._stage(command)
        result = await apply_patch(
            self.world, command, self.subject.caller, source_tool_name=self.subject.tool,
            is_gated=self.subject.phase == "execute",
        )
        if result.status not in ("applied", "checked"):
            fault = result.error
            raise CodespaceError(
                ErrorCode(fault.code) if fault else ErrorCode.TOOL_FAILED,
                f"The patch is {result.status}{f': {fault.message}' if fault else '.'}",
                detail={"operation_id": result.operation_id, "status": result.status},
            )
        return {
            "status": result.status, "files": list(result.files), "operation_id": result.operation_id,
            "diff": result.diff,
        }

    async def _stage(self, command: ApplyPatch) -> dict[str, Any]:
        """Keep a patch until its apply returns, if it could be written now. Raises as planning does."""
        if command.operation_key is not None:
            raise CodespaceError(
                ErrorCode.INVALID_ARGUMENT, "Within an apply a patch has no operation_key: resolve is done once.",
                detail={"field": "operation_key"},
            )
        workspace = admit(self.world.workspaces, command.workspace_id, "write")
        texts = (*self._staged, command.patch)
        expected = {**self._expected_versions, **command.expected_versions}
        prepared = await to_thread.run_sync(preview_patches, self.world, workspace, texts, expected)
        self._staged.append(command.patch)
        self._expected_versions = expected
        return {"status": "staged", "files": list(prepared.files)}

    async def exec(self, asked: _Exec) -> dict[str, Any]:
        """Return how a command ended and what it printed. A call that ends before it takes it along."""
        command = ExecCommand(
            workspace_id=self.subject.workspace_id, work_id=self.subject.work_id, command=asked.argv, stdin="null",
            timeout_ms=None if asked.timeout is None else max(1, int(asked.timeout * 1000)),
        )
        workspace = admit(self.world.workspaces, command.workspace_id, "exec")
        require_runnable(command.command)
        if self.subject.phase == "apply" and self.subject.action_id is not None:
            session = Session(workspace, self.subject.work_id)
            await begin_effect(self.world, session, self.subject.action_id, self.subject.caller)
        self._is_external = True
        ended = await run_to_end(
            self.world, command, self.subject.caller, is_granted=self.subject.phase == "apply",
            is_gated=self.subject.phase == "execute",
        )
        return asdict(ended)

    async def push_pending_action(self, asked: _Push) -> dict[str, Any]:
        """Put an action on the stack of the call's session. Raises as the store does."""
        workspace = admit(self.world.workspaces, self.subject.workspace_id, "write")
        store = LoggedPendingActions(self.world, Session(workspace, self.subject.work_id), self.subject.caller)
        effect = Closure() if asked.action is None else RegisteredCallback(asked.action, asked.payload)
        pushed = await store.push(NewAction(
            label=asked.label,
            source_tool_name=asked.source_tool_name,
            effect=effect,
            preview={"label": asked.label, "tool": self.subject.tool, "details": asked.details},
            details=asked.details,
        ))
        self.pushed.append(pushed)
        return {"action_id": pushed.action_id}


_METHODS: Mapping[str, tuple[type[_Asked], Callable[[CallServices, Any], Awaitable[dict[str, Any]]]]] = {
    "read": (_Read, CallServices.read),
    "find": (_Find, CallServices.find),
    "search": (_Search, CallServices.search),
    "apply_patch": (_Patch, CallServices.apply_patch),
    "exec": (_Exec, CallServices.exec),
    "push_pending_action": (_Push, CallServices.push_pending_action),
}
