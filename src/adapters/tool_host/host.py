"""One process of tools, seen from the server: what is asked of it, what it asks, and how it ends.

It can't do the server harm: what isn't a message ends it, and so does a call that goes on after its time. Whoever waits
for it then is told. Nothing here says whose fault an end was; `adapters.tool_host.hosts` does.
"""

import json
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import anyio
from anyio.abc import TaskGroup
from pydantic import ValidationError

from adapters.tool_host.end import HostEnd
from adapters.tool_host.messages import SAID, Asks, Done, Failed, Loaded, Refused, Said, SaidError, SaidResult
from adapters.tool_host.sources import Source
from adapters.tool_host.starting import ToolProcess, start_process
from adapters.wire import Link, LinkClosedError, WireError
from codespace_es.ports.custom_tools import OrphanedAction, ToolServices
from codespace_es.vocabulary import limits
from codespace_es.vocabulary.errors import CodespaceError, ErrorCode

logger = logging.getLogger(__name__)

_REQUESTS_MAX: Final = 64
"""So many requests of one process may wait for their answers."""


class HostEndedError(Exception):
    """The process has ended before it answered, or couldn't be started."""

    def __init__(self, end: HostEnd) -> None:
        super().__init__(end.words)
        self.end = end


class CallFailedError(Exception):
    """The code of a tool raised; `error` is what it let through of the server's own errors."""

    def __init__(self, problem: str, error: SaidError | None) -> None:
        super().__init__(problem)
        self.problem = problem
        self.error = error


class CallTimeoutError(Exception):
    """The call had its time and was stopped."""


@dataclass(frozen=True, slots=True)
class Kept:
    """A pending action whose callbacks live in a process."""

    source: Source
    action: OrphanedAction
    """As it will be, should the process end."""


@dataclass(slots=True)
class _Call:
    source: Source
    context: Mapping[str, Any]
    services: ToolServices
    requests: anyio.CancelScope = field(default_factory=anyio.CancelScope)
    is_over: anyio.Event = field(default_factory=anyio.Event)
    is_late: bool = False
    said: Done | Failed | None = None


@dataclass(slots=True)
class _Load:
    is_over: anyio.Event = field(default_factory=anyio.Event)
    said: Loaded | Refused | None = None


class Host:
    """A process of tools. Ends itself when it misbehaves; `on_end` is called once, when it is gone."""

    def __init__(
        self, tasks: TaskGroup, sources: tuple[Source, ...], on_end: Callable[["Host"], Awaitable[None]],
        *, grace_seconds: float = limits.TOOL_STOP_GRACE_SECONDS,
    ) -> None:
        self.sources = sources
        self.closures: dict[str, Kept] = {}
        """By the action's id."""
        self.loading: Source | None = None
        """What is being loaded while it is brought up; kept by whoever does that."""
        self.end: HostEnd | None = None
        self._on_end = on_end
        self._tasks = tasks
        self._grace_seconds = grace_seconds
        self._calls: dict[str, _Call] = {}
        self._load: _Load | None = None
        self._verdict: HostEnd | None = None
        """Why we end it, if it is us."""
        self._is_flushing = False
        self._requests = 0
        self.is_gone = anyio.Event()
        try:
            self._process: ToolProcess = start_process()
        except OSError as error:
            raise HostEndedError(HostEnd("exited", f"it can't be started: {error}")) from error
        self._link = Link(self._process.connection)
        tasks.start_soon(self._receive)
        tasks.start_soon(self._watch)

    @property
    def is_up(self) -> bool:
        """It can be asked for something."""
        return self.end is None and self._verdict is None

    @property
    def busy_sources(self) -> set[Source]:
        """Whose code runs there at the moment."""
        return {call.source for call in self._calls.values()}

    async def load(self, source: Source, roots: tuple[str, ...], seconds: float) -> Loaded | Refused:
        """Return what loading `source` came to. One at a time. Raises HostEndedError."""
        load = self._load = _Load()
        self._send({"kind": "load", "source": source.to_wire(), "roots": list(roots)})
        with anyio.move_on_after(seconds):
            await load.is_over.wait()
        if not load.is_over.is_set():
            await self.kill(HostEnd("hung", f"it took longer than {seconds:g} s to load"))
        if load.said is None or not self.is_up:
            await self.is_gone.wait()
            assert self.end is not None, "it is gone"
            raise HostEndedError(self.end)
        return load.said

    async def call(
        self, source: Source, message: Mapping[str, Any], services: ToolServices, seconds: float
    ) -> SaidResult | None:
        """Return what a call came to. Cancelled, it is asked to stop; its time limit holds all the same.

        Raises:
            CallFailedError, CallTimeoutError, HostEndedError.
        """
        call_id = message["call"]
        call = self._calls[call_id] = _Call(source, message["context"], services)
        try:
            self._send(message)
        except CodespaceError:
            del self._calls[call_id]
            raise
        self._tasks.start_soon(self._limit, call_id, call, seconds)
        try:
            await call.is_over.wait()
        except BaseException:
            self._send({"kind": "stop", "call": call_id})
            raise
        if call.is_late:
            raise CallTimeoutError
        if call.said is None:
            await self.is_gone.wait()
            assert self.end is not None, "it is gone"
            raise HostEndedError(self.end)
        if isinstance(call.said, Failed):
            raise CallFailedError(call.said.problem, call.said.error)
        return call.said.result

    def forget(self, action_id: str) -> None:
        """Have a closure dropped."""
        if action_id in self.closures:
            del self.closures[action_id]
            self._send({"kind": "forget", "action_id": action_id})

    async def kill(self, end: HostEnd) -> None:
        """End it, and all that it has started, and return when it is gone."""
        self._verdict = self._verdict or end
        await self._process.kill(tells_where=end.kind == "hung")
        await self.is_gone.wait()

    async def _limit(self, call_id: str, call: _Call, seconds: float) -> None:
        with anyio.move_on_after(seconds):
            await call.is_over.wait()
        if call.is_over.is_set():
            return
        call.is_late = True
        self._send({"kind": "stop", "call": call_id})
        with anyio.move_on_after(self._grace_seconds):
            await call.is_over.wait()
        if not call.is_over.is_set():
            await self.kill(HostEnd("hung", f"a call went on after its limit of {seconds:g} s"))

    async def _receive(self) -> None:
        """Take what it says until it is gone, then tell everybody who waits. Ends with the process, not before."""
        with anyio.CancelScope(shield=True):
            try:
                while True:
                    await anyio.wait_readable(self._link.fileno())
                    for message, descriptors in self._link.receive():
                        if descriptors:
                            raise WireError("it sent descriptors")
                        self._take(SAID.validate_python(message))
            except LinkClosedError:
                pass  # it is ending, or has closed its socket, which is the same to us
            except (WireError, ValidationError) as error:
                logger.warning("Custom tools: what their process says isn't understood: %s", str(error)[:500])
                self._verdict = self._verdict or HostEnd("garbled", "it wrote what isn't a message of ours")
            await self._process.kill(tells_where=False)
            anyio.notify_closing(self._link.fileno())  # its number may be another's in the same moment
            self._link.close()
            self._finish()
            await self._on_end(self)

    async def _watch(self) -> None:
        """Notice its end although something that it has started keeps its socket open."""
        with anyio.CancelScope(shield=True):
            await self._process.wait()
            self._link.shut_down()

    def _finish(self) -> None:
        self.end = self._verdict or self._process.describe_end()
        for call in self._calls.values():
            call.is_over.set()
            call.requests.cancel()
        if self._load is not None:
            self._load.is_over.set()
        self.is_gone.set()

    def _take(self, said: Said) -> None:
        match said:
            case Loaded() | Refused():
                if self._load is None or self._load.is_over.is_set():
                    raise WireError("nothing is being loaded")
                self._load.said = said
                self._load.is_over.set()
            case Done() | Failed():
                call = self._calls.pop(said.call, None)
                if call is None:
                    raise WireError("there is no such call")
                call.said = said
                call.requests.cancel()
                call.is_over.set()
            case Asks():
                if self._requests >= _REQUESTS_MAX:
                    raise WireError("it asks for too much at once")
                self._requests += 1
                self._tasks.start_soon(self._serve, said)

    async def _serve(self, asks: Asks) -> None:
        """Answer a request, on behalf of a call that is running; whatever goes wrong is the answer."""
        answer: dict[str, Any] = {"error": _error(CodespaceError(ErrorCode.TOOL_FAILED, "The call that asks is over."))}
        try:
            call = self._calls.get(asks.call)
            if call is not None:
                with call.requests:
                    answer = {"result": await self._result(call, asks)}
        except CodespaceError as refusal:
            answer = {"error": _error(refusal)}
        except Exception:
            logger.exception("Custom tools: %s asked for %s, which failed unexpectedly", asks.call, asks.method)
            answer = {"error": _error(CodespaceError(ErrorCode.INTERNAL, f"{asks.method} failed unexpectedly."))}
        finally:
            self._requests -= 1
        try:
            self._send({"kind": "answer", "request": asks.request, **answer})
        except CodespaceError as refusal:
            self._send({"kind": "answer", "request": asks.request, "error": _error(refusal)})

    async def _result(self, call: _Call, asks: Asks) -> dict[str, Any]:
        result = await call.services.serve(asks.method, asks.parameters)
        if asks.method == "push_pending_action" and asks.parameters.get("action") is None:
            action_id = result["action_id"]
            self.closures[action_id] = Kept(
                call.source, OrphanedAction(action_id, call.context["workspace_id"], call.context["work_id"])
            )
            if self.end is not None:
                await self._on_end(self)  # it was told before there was this one
        return result

    def _send(self, message: Mapping[str, Any]) -> None:
        """Send, or queue; to one that is gone it goes nowhere, and whoever waits is told of that.

        Raises:
            CodespaceError: TOOL_FAILED if it is longer than a message can be.
        """
        if not self.is_up:
            return
        try:
            self._link.send(dict(message))
        except LinkClosedError:
            return
        except (WireError, ValueError) as error:
            raise CodespaceError(ErrorCode.TOOL_FAILED, f"This can't be handed to a custom tool: {error}.") from error
        if self._link.has_unsent and not self._is_flushing:
            self._is_flushing = True
            self._tasks.start_soon(self._flush)

    async def _flush(self) -> None:
        try:
            while self._link.has_unsent and self._link.fileno() >= 0:
                await anyio.wait_writable(self._link.fileno())
                self._link.flush()
        except (LinkClosedError, anyio.ClosedResourceError, OSError):
            return  # whoever receives finds out too, and tells
        finally:
            self._is_flushing = False


def _error(error: CodespaceError) -> dict[str, Any]:
    return {"code": error.code.value, "message": error.message, "detail": json.loads(json.dumps(error.detail))}

