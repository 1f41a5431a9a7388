"""The operator's tools as the rules know them: what is there, calls, and callbacks of pending actions.

Everything is loaded beside the start of the server; the first list waits for it, for a bounded time. Implements
`codespace_es.ports.custom_tools.CustomTools` and `codespace_es.ports.tool_host.ToolHost`.
"""

import logging
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Literal

import anyio
from anyio import to_thread
from anyio.abc import TaskGroup
from pydantic_core import PydanticSerializationError, from_json, to_json

from adapters.tool_host.host import CallFailedError, CallTimeoutError, Host, HostEndedError
from adapters.tool_host.hosts import DEFAULT_LIMITS, Hosts, Limits, OnOrphans, SkippedError
from adapters.tool_host.known import KnownTools
from adapters.tool_host.messages import SaidResult
from adapters.tool_host.sources import Source, Sources
from codespace_es.ports.custom_tools import (
    CallSubject,
    OrphanedAction,
    ServicesOf,
    ToolCatalogue,
    ToolOutcome,
    ToolServices,
)
from codespace_es.ports.log import InstanceClosedError, StoreUnavailableError, UnknownTopicError
from codespace_es.ports.tool_host import ActionCall, CallbackLostError, CallbackRaisedError, CallbackResult
from codespace_es.vocabulary import limits
from codespace_es.vocabulary.errors import CodespaceError, ErrorCode
from codespace_es.vocabulary.identifiers import ActionId

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What custom tools have around them."""

    find_sources: Callable[[], Sources]
    """Runs in a worker thread."""
    roots: tuple[str, ...]
    """Of the workspaces: nothing is loaded from there."""
    reserved: frozenset[str]
    """Names of the server's own tools."""
    limits_of_time: Limits = DEFAULT_LIMITS


class HostedTools:
    """Custom tools in processes of their own. Make it by `open_custom_tools`."""

    def __init__(self, tasks: TaskGroup, surroundings: Surroundings) -> None:
        self._tasks = tasks
        self._surroundings = surroundings
        self._services_of: ServicesOf | None = None
        self._on_orphans: OnOrphans | None = None
        self._hosts: Hosts | None = None
        self._is_loaded = anyio.Event()
        self._known = KnownTools(surroundings.reserved)

    def begin(self, services_of: ServicesOf, on_orphans: OnOrphans) -> None:
        """Begin to load, now that it is known who serves the tools."""
        self._services_of = services_of
        self._on_orphans = on_orphans
        self._tasks.start_soon(self.load)

    async def load(self) -> None:
        """Load everything. Every fault is in the catalogue and in the server's log."""
        try:
            sources = await to_thread.run_sync(self._surroundings.find_sources)
            for fault in sources.faults:
                self._known.note(fault.source, fault.message)
            self._hosts = Hosts(
                self._tasks, sources.found, roots=self._surroundings.roots, on_said=self._known.take,
                on_skip=self._known.lose,
                on_suspect=self._known.suspect,
                on_orphans=self._orphan,
                limits_of_time=self._surroundings.limits_of_time,
            )
            for source in sources.found:
                try:
                    await self._hosts.of(source)
                except SkippedError:
                    continue  # its fault was noted when it was found
        finally:
            self._is_loaded.set()

    async def close(self) -> None:
        """End every process of tools. See the port."""
        if self._hosts is not None:
            await self._hosts.close()

    async def catalogue(self) -> ToolCatalogue:
        """Return what is there. See the port."""
        await self._wait_until_loaded()
        return self._known.catalogue()

    def schema_of(self, name: str) -> Mapping[str, Any] | None:
        """Return the schema of a tool's own arguments. See the port."""
        known = self._known.find(name)
        return None if known is None else known.specification.parameters

    async def execute(self, subject: CallSubject, parameters: Mapping[str, Any], services: ToolServices) -> ToolOutcome:
        """Run a tool. See the port."""
        await self._wait_until_loaded()
        known = self._known.find(subject.tool)
        if known is None:
            reason = self._known.why_gone(subject.tool).rstrip(".")
            raise CodespaceError(ErrorCode.TOOL_FAILED, f"{subject.tool} can't be called: {reason}.")
        message = {
            "kind": "execute", "call": subject.call_id, "tool": subject.tool, "parameters": dict(parameters),
            "context": _context(subject),
        }
        try:
            result = await (await self._host(known.source)).call(known.source, message, services, known.timeout)
        except CallFailedError as failed:
            raise _error(subject.tool, failed) from failed
        except CallTimeoutError as late:
            raise CodespaceError(
                ErrorCode.TIMEOUT, f"{subject.tool} took longer than {known.timeout:g} s and was stopped."
            ) from late
        except (HostEndedError, SkippedError) as ended:
            raise CodespaceError(ErrorCode.TOOL_FAILED, f"{subject.tool} failed: {ended}.") from ended
        assert result is not None, "execute always has a result"
        return ToolOutcome(result.content, _clean(subject.tool, result), result.is_error)

    async def apply(self, call: ActionCall) -> CallbackResult:
        """Run the `apply` of an action. See the port."""
        result = await self._call_back(call, "apply")
        assert result is not None, "an apply that returns nothing has a text of its own"
        return result

    async def reject(self, call: ActionCall) -> CallbackResult | None:
        """Run the `reject` of an action. See the port."""
        return await self._call_back(call, "reject")

    def forget(self, action_id: ActionId) -> None:
        """Let go of a closure. See the port."""
        host = self._hosts.with_closure(action_id) if self._hosts is not None else None
        if host is not None:
            host.forget(action_id)

    async def _call_back(self, call: ActionCall, decision: Literal["apply", "reject"]) -> CallbackResult | None:
        await self._wait_until_loaded()
        source, host = await self._find_callbacks(call)
        services = self._serve(CallSubject(
            f"{call.caller.request_id}/{call.action_id}", call.workspace_id, call.work_id, call.source_tool_name,
            decision, call.caller, call.action_id,
        ))
        message = {
            "kind": "run", "call": f"{call.caller.request_id}/{call.action_id}", "decision": decision,
            "action": call.handler, "action_id": call.action_id, "reason": call.reason,
            "context": {
                "call_id": call.caller.request_id, "workspace_id": call.workspace_id, "work_id": call.work_id,
                "action_id": call.action_id, "label": call.label, "payload": call.payload, "extra": call.extra,
            },
        }
        seconds = self._known.seconds_of(source)
        try:
            result = await host.call(source, message, services, seconds)
        except CallFailedError as failed:
            raise CallbackRaisedError(failed.problem, is_external=services.is_external) from failed
        except CallTimeoutError as late:
            raise CallbackRaisedError(
                f"{decision} took longer than {seconds:g} s", is_external=services.is_external
            ) from late
        except HostEndedError as ended:
            raise CallbackLostError(str(ended), is_external=services.is_external) from ended
        if result is None:
            if decision == "reject":
                return None
            result = SaidResult(content="", is_error=False)
        return CallbackResult(
            result.content, _clean(call.source_tool_name, result), result.is_error, services.patches,
            services.expected_versions, services.is_external,
        )

    async def _find_callbacks(self, call: ActionCall) -> tuple[Source, Host]:
        """Return where the callbacks of an action are. Raises CallbackLostError."""
        if self._hosts is None:
            raise CallbackLostError("The custom tools aren't loaded yet.")
        if call.handler is None:
            host = self._hosts.with_closure(call.action_id)
            if host is None or not host.is_up:
                raise CallbackLostError("No process of this server has its callback.")
            return host.closures[call.action_id].source, host
        source = self._known.owner_of_action(call.handler)
        if source is None:
            reason = self._known.why_no_action(call.handler).rstrip(".")
            raise CallbackLostError(f"There is no action {call.handler!r}: {reason}.")
        try:
            return source, await self._hosts.of(source)
        except SkippedError as skipped:
            raise CallbackLostError(f"There is no action {call.handler!r}: {skipped}") from skipped

    def _serve(self, subject: CallSubject) -> ToolServices:
        assert self._services_of is not None, "it has begun"
        return self._services_of(subject)

    async def _host(self, source: Source) -> Host:
        assert self._hosts is not None, "it has loaded"
        return await self._hosts.of(source)

    async def _wait_until_loaded(self) -> None:
        with anyio.move_on_after(limits.TOOL_LISTING_SECONDS_MAX):
            await self._is_loaded.wait()

    async def _orphan(self, orphans: Sequence[OrphanedAction]) -> None:
        assert self._on_orphans is not None, "it has begun"
        try:
            await self._on_orphans(orphans)
        except (CodespaceError, StoreUnavailableError, UnknownTopicError, InstanceClosedError) as error:
            logger.warning("Pending actions that have lost their callbacks can't be ended now: %s", error)


def _context(subject: CallSubject) -> dict[str, Any]:
    return {"call_id": subject.call_id, "workspace_id": subject.workspace_id, "work_id": subject.work_id}


def _clean(tool: str, result: SaidResult) -> Any:
    """Return the details of a result as JSON that every client can read. Raises TOOL_FAILED."""
    try:
        to_json(result.content)
        return from_json(to_json(result.details, inf_nan_mode="null"))
    except (PydanticSerializationError, ValueError) as error:
        raise CodespaceError(ErrorCode.TOOL_FAILED, f"{tool} returned what isn't JSON: {error}") from error


def _error(tool: str, failed: CallFailedError) -> CodespaceError:
    """Return what a caller is told of a call that raised: the server's own errors go through as they are."""
    if failed.error is not None and failed.error.code in ErrorCode.__members__:
        return CodespaceError(ErrorCode(failed.error.code), failed.error.message, detail=failed.error.detail)
    return CodespaceError(ErrorCode.TOOL_FAILED, f"{tool} failed: {failed.problem.rstrip('.')}.")


@asynccontextmanager
async def open_custom_tools(surroundings: Surroundings) -> AsyncIterator[HostedTools]:
    """Have the operator's tools; nothing runs before `begin`. Leaving it ends their processes."""
    async with anyio.create_task_group() as tasks:
        tools = HostedTools(tasks, surroundings)
        try:
            yield tools
        finally:
            with anyio.CancelScope(shield=True):
                await tools.close()
            tasks.cancel_scope.cancel()
