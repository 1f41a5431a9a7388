"""Resources: workspaces, an operation, approvals, processes, pending actions, the timeline; as JSON, never changed.

The timeline is told in pages of at most 200 events, oldest first within a page; without `?after=` the newest page.
Source: contract A6.
"""

import re
from typing import Any

from mcp.shared.exceptions import MCPError
from mcp_types import (
    INVALID_PARAMS,
    ListResourcesResult,
    ListResourceTemplatesResult,
    PaginatedRequestParams,
    ReadResourceRequestParams,
    ReadResourceResult,
    Resource,
    ResourceTemplate,
    TextResourceContents,
)
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from adapters.mcp_server.calling import Context, identify
from adapters.mcp_server.results import to_text
from codespace_es.codespace import Codespace
from codespace_es.command_handlers.asking import ListHolds
from codespace_es.command_handlers.observing import ListProcesses
from codespace_es.command_handlers.previewing import ListPending
from codespace_es.command_handlers.reading import DescribeWorkspace
from codespace_es.command_handlers.reporting import ReportOperation
from codespace_es.ports.log import StoreUnavailableError, UnknownTopicError
from codespace_es.vocabulary.errors import CodespaceError, ErrorCode
from codespace_es.vocabulary.event import Caller, RecordedEvent

_WORKSPACES = "codespace://workspaces"
_APPROVALS = "codespace://approvals"
_PROCESSES = "codespace://processes"
_PENDING = "pending://actions"
_TIMELINE = re.compile(r"codespace://timeline(?:\?after=(\d{1,18}))?")
_OPERATION = re.compile(r"codespace://operations/(op-[0-9a-f-]{36})")
_JSON = "application/json"

_PAGE_EVENTS_MAX = 200
_PAGE_BYTES_MAX = 256 * 1024

_LEGACY_NOT_FOUND = -32002
"""Code of a missing resource until 2025-11-25; since 2026-07-28 it is invalid params. Source: SEP-2164."""

_RESOURCES = ListResourcesResult(
    resources=[
        Resource(
            uri=_WORKSPACES, name="workspaces", title="Workspaces", mime_type=_JSON,
            description="The configured workspaces and what each allows.",
        ),
        Resource(
            uri=_APPROVALS, name="approvals", title="Approvals", mime_type=_JSON,
            description="The holds that aren't over, with what each would do.",
        ),
        Resource(
            uri=_PROCESSES, name="processes", title="Processes", mime_type=_JSON,
            description="The commands that live, in this server or another, as process_status tells them.",
        ),
        Resource(
            uri=_PENDING, name="pending_actions", title="Pending actions", mime_type=_JSON,
            description="The previews that wait to be resolved, stack by stack, the next one of each first.",
        ),
        Resource(
            uri="codespace://timeline", name="timeline", title="Timeline", mime_type=_JSON,
            description="The newest events of the log; older ones by ?after=POSITION.",
        ),
    ]
)

_TEMPLATES = ListResourceTemplatesResult(
    resource_templates=[
        ResourceTemplate(
            uri_template="codespace://operations/{id}", name="operation", title="Operation", mime_type=_JSON,
            description="What became of one patch or undo.",
        ),
        ResourceTemplate(
            uri_template="codespace://timeline{?after}", name="timeline_page", title="Timeline page", mime_type=_JSON,
            description="Events after a position.",
        ),
    ]
)


class Resources:
    """Answers `resources/list`, `resources/templates/list` and `resources/read`."""

    def __init__(self, codespace: Codespace) -> None:
        self._codespace = codespace

    async def list_resources(self, _context: Context, _params: PaginatedRequestParams | None) -> ListResourcesResult:
        """Return the resources that have a name of their own."""
        return _RESOURCES

    async def list_templates(
        self, _context: Context, _params: PaginatedRequestParams | None
    ) -> ListResourceTemplatesResult:
        """Return the forms of the others."""
        return _TEMPLATES

    async def read(self, context: Context, params: ReadResourceRequestParams) -> ReadResourceResult:
        """Return the resource as JSON.

        Raises:
            MCPError: there is no such resource, or the log can't be read now.
        """
        uri = str(params.uri)
        try:
            content = await self._content(uri, identify(self._codespace, context))
        except (CodespaceError, StoreUnavailableError, UnknownTopicError) as error:
            if isinstance(error, CodespaceError) and error.code is ErrorCode.OPERATION_NOT_FOUND:
                content = None
            else:
                raise MCPError(-32603, f"The resource can't be read now: {error}", {"uri": uri}) from error
        if content is None:
            is_modern = context.protocol_version in MODERN_PROTOCOL_VERSIONS
            code = INVALID_PARAMS if is_modern else _LEGACY_NOT_FOUND
            raise MCPError(code, f"Resource not found: {uri[:200]}", {"uri": uri[:200]})
        return ReadResourceResult(contents=[TextResourceContents(uri=uri, mime_type=_JSON, text=to_text(content)[1])])

    async def _content(self, uri: str, caller: Caller) -> dict[str, Any] | None:
        if uri == _WORKSPACES:
            return {
                "workspaces": [
                    (await self._codespace.handle(DescribeWorkspace(workspace_id=name), caller)).to_wire()
                    for name in self._codespace.world.workspaces
                ]
            }
        if uri == _APPROVALS:
            return (await self._codespace.handle(ListHolds(), caller)).to_wire()
        if uri == _PROCESSES:
            return (await self._codespace.handle(ListProcesses(), caller)).to_wire()
        if uri == _PENDING:
            return (await self._codespace.handle(ListPending(), caller)).to_wire()
        operation = _OPERATION.fullmatch(uri)
        if operation:
            return (await self._codespace.handle(ReportOperation(operation_id=operation[1]), caller)).to_wire()
        timeline = _TIMELINE.fullmatch(uri)
        if timeline:
            return await self._timeline(None if timeline[1] is None else int(timeline[1]))
        return None

    async def _timeline(self, after: int | None) -> dict[str, Any]:
        """Return the page of events after a position, with where the neighbouring pages are."""
        head, _hash = await self._codespace.world.log.head()
        start = max(0, head - _PAGE_EVENTS_MAX) if after is None else after
        events: list[dict[str, Any]] = []
        size_bytes = 0
        async for recorded in self._codespace.world.log.read_log(after=start, limit=_PAGE_EVENTS_MAX):
            event = _tell_event(recorded)
            size_bytes += len(to_text(event)[1])
            if events and size_bytes > _PAGE_BYTES_MAX:
                break
            events.append(event)
        last = events[-1]["position"] if events else start
        page: dict[str, Any] = {"events": events, "head": head}
        if last < head:
            page["next"] = f"codespace://timeline?after={last}"
        if start > 0:
            page["earlier"] = f"codespace://timeline?after={max(0, min(start, head) - _PAGE_EVENTS_MAX)}"
        return page


def _tell_event(recorded: RecordedEvent) -> dict[str, Any]:
    envelope = recorded.envelope.model_dump(mode="json", exclude_none=True, exclude={"append_id"})
    return {
        "position": recorded.position,
        "stream_id": recorded.stream_id,
        "version": recorded.version,
        "topic": recorded.topic,
        **envelope,
        "event": recorded.event.model_dump(mode="json", exclude_none=True),
    }
