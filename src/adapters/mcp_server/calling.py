"""One `tools/call`: caller, arguments, the door, the result; refusals leave a trace, surprises an incident id.

1. The caller is named by a fresh request id and the client's own name; it is told of long waits, if it asked.
2. What can't be understood, or is refused, is a result with `isError`; a protocol error is for unknown tools alone.
3. A refusal of a call for which nothing was minted is recorded, where an audit would miss it.
4. Anything else that escapes is INTERNAL: the client gets an incident id, the log on stderr the traceback.

A cancelled call ends here by the cancellation itself: only its waiting, since effects run in tasks of their own.
Source: decisions 8, 35; contract A1, A6.
"""

import logging
from collections.abc import Mapping
from typing import Any

from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp_types import INVALID_PARAMS, CallToolRequestParams, InputRequiredResult

from adapters.mcp_server.arguments import NOT_AN_OBJECT, read_arguments, remark_unknown
from adapters.mcp_server.bias_lines import BiasLines
from adapters.mcp_server.custom import find_custom_tool, names_of_custom_tools
from adapters.mcp_server.elicitation import People
from adapters.mcp_server.results import tell_answer, tell_error
from adapters.mcp_server.tool import Tool
from codespace_es.aggregates.instance import InstanceCallRefused
from codespace_es.codespace import Codespace
from codespace_es.command_handlers.instance_life import InstanceLife
from codespace_es.vocabulary import limits
from codespace_es.vocabulary.answer import Command
from codespace_es.vocabulary.errors import CodespaceError, ErrorCode
from codespace_es.vocabulary.event import Caller
from codespace_es.vocabulary.file_change import digest_of
from codespace_es.vocabulary.fingerprint import canonical_json
from codespace_es.vocabulary.identifiers import RequestId

logger = logging.getLogger(__name__)

Context = ServerRequestContext[Any, Any]

_RECORDED_OF_READS = frozenset({
    ErrorCode.UNAUTHORIZED,
    ErrorCode.WORKSPACE_NOT_FOUND,
    ErrorCode.WORKSPACE_BUSY,
    ErrorCode.RESOURCE_QUEUE_FULL,
    ErrorCode.PATH_ESCAPE,
    ErrorCode.PATH_PROTECTED,
    ErrorCode.PATH_NOT_DIRECTORY,
    ErrorCode.SYMLINK_REJECTED,
    ErrorCode.SPECIAL_FILE_REJECTED,
})
"""Refusals of reading tools that say what somebody tried; a missing file or a bad limit says nothing."""


_TOLD_BY_THEMSELVES = frozenset({ErrorCode.PROCESS_SPAWN_FAILED, ErrorCode.APPROVAL_REQUIRED})
"""Refusals that leave an event of their own: `process.not_started`, `approval.created`."""


class ToolCalls:
    """Answers `tools/call`."""

    def __init__(self, codespace: Codespace, life: InstanceLife, tools: Mapping[str, Tool]) -> None:
        self._codespace = codespace
        self._life = life
        self._tools = tools
        self._people = People(codespace)
        self._lines = BiasLines()

    async def answer(self, context: Context, params: CallToolRequestParams) -> dict[str, Any] | InputRequiredResult:
        """Return the result of one call, or what the client's user has to be asked before.

        Raises:
            MCPError: there is no such tool.
        """
        tool = self._tools.get(params.name) or await find_custom_tool(self._codespace, params.name)
        if tool is None:
            names = ", ".join([*self._tools, *await names_of_custom_tools(self._codespace)])
            raise MCPError(INVALID_PARAMS, f"Unknown tool {params.name[:100]!r}; there are: {names}.", None)
        given = tool.arrange(params.arguments or {})
        notices = remark_unknown(tool.command, given)
        caller = identify(self._codespace, context)
        try:
            command = await self._understand(tool, given, caller)
            answer = await self._people.involve(
                context, params, caller, lambda: tool.call(self._codespace, command, caller), tool.tell_resumed
            )
            if isinstance(answer, InputRequiredResult):
                return answer
            return tell_answer(answer, notices, self._lines)
        except CodespaceError as refusal:
            await self._keep_trace(tool, given, refusal, caller)
            return tell_error(refusal, notices, self._lines)
        except Exception:
            incident = f"inc-{self._codespace.world.ids.uuid()}"
            logger.exception("%s: %s failed unexpectedly", incident, tool.name)
            message = f"{tool.name} failed unexpectedly; incident {incident}."
            failure = CodespaceError(ErrorCode.INTERNAL, message, detail={"incident": incident})
            await self._codespace.tell_pending(given, failure, caller)
            return tell_error(failure, notices, self._lines)

    async def _understand(self, tool: Tool, given: Mapping[str, Any], caller: Caller) -> Command:
        """Return the command. Raises INVALID_ARGUMENT, which tells what is pending like every other answer."""
        try:
            return read_arguments(tool.name, tool.command, given)
        except CodespaceError as refusal:
            await self._codespace.tell_pending(given, refusal, caller)
            raise

    async def _keep_trace(
        self, tool: Tool, given: Mapping[str, Any], refusal: CodespaceError, caller: Caller
    ) -> None:
        """Have a refusal recorded, unless an operation, a process or a hold tells of it already."""
        is_told = "operation_id" in refusal.detail or refusal.code in _TOLD_BY_THEMSELVES
        if is_told or (tool.is_read_only and refusal.code not in _RECORDED_OF_READS):
            return
        workspace_id = given.get("workspace_id")
        refused = InstanceCallRefused(
            tool=tool.name,
            code=refusal.code,
            workspace_id=workspace_id[: limits.LABEL_CHARACTERS_MAX] if isinstance(workspace_id, str) else None,
            arguments=digest_of(canonical_json(given)),
        )
        await self._life.record_refusal(refused, caller)


def identify(codespace: Codespace, context: Context) -> Caller:
    """Return on whose behalf a request is handled."""
    monotonic = codespace.world.clock.monotonic
    began = monotonic()

    async def report_wait(seconds: float, awaited: str) -> None:
        # One call may wait for several things at once, and what is told may never go back.
        await context.session.report_progress(max(seconds, monotonic() - began), message=f"waiting for {awaited}")

    client = context.session.client_params
    return Caller(
        "mcp",
        RequestId(f"req-{codespace.world.ids.uuid()}"),
        client=_name(client.client_info.name, client.client_info.version) if client else None,
        report_wait=report_wait,
    )


def _name(name: str, version: str) -> str:
    return f"{name}/{version}"[: limits.LABEL_CHARACTERS_MAX]


async def pass_on_unusable_arguments(ctx: Context, call_next: CallNext) -> HandlerResult:
    """Let a call whose `arguments` aren't an object reach the tool, which can say so; the SDK would say nothing.

    A middleware of the SDK's server, since its own check comes before every request is handled.
    """
    params = ctx.params
    if ctx.method == "tools/call" and params is not None:
        given = params.get("arguments")
        if given is not None and not isinstance(given, dict):
            ctx.params = {**params, "arguments": {NOT_AN_OBJECT: given}}
    return await call_next(ctx)
