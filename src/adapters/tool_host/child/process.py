"""The process itself: takes one message after another, and keeps what was loaded and what runs.

A load is done at once, in the main thread, before anything else is taken; calls run beside each other.
Whatever a tool raises, `SystemExit` included, ends its call and nothing else. What it prints goes to standard error.
"""

import contextlib
import faulthandler
import logging
import os
import resource
import signal
import socket
import sys
from collections.abc import Mapping
from io import TextIOWrapper
from typing import Any, NoReturn

import anyio
from anyio.abc import TaskGroup

from adapters.spawner.tree import end_with_parent
from adapters.tool_host.child.asking import CURRENT, Asking, Call
from adapters.tool_host.child.authors_api import AuthorsApi
from adapters.tool_host.child.loading import LoadProblemError, Registry, load
from adapters.tool_host.child.running import call_back, execute
from adapters.tool_host.child.telling import fault_of
from adapters.wire import Link, LinkClosedError, WireError
from codespace_es.tools import CodespaceError, Context

logger = logging.getLogger("custom tools")


def serve(connection: socket.socket) -> NoReturn:
    """Serve until the server is gone."""
    connection.set_inheritable(False)
    end_with_parent(signal.SIGKILL)
    _prepare()
    with contextlib.suppress(KeyboardInterrupt):
        anyio.run(ToolProcess(Link(connection)).run)
    os._exit(0)  # without waiting for threads of the tools


def _prepare() -> None:
    faulthandler.enable()  # a crash, or the server's SIGABRT at a hang, tells on standard error where it was
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    sys.dont_write_bytecode = True
    if isinstance(sys.stdout, TextIOWrapper):
        # What is printed is in the log in its order, and what no encoding has stands there escaped.
        sys.stdout.reconfigure(line_buffering=True, errors="backslashreplace")
    logging.basicConfig(stream=sys.stderr, level=logging.INFO, format="codespace-es: %(name)s: %(message)s")
    with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w", encoding="ascii") as file:
        file.write("1000")  # if memory runs out, this process goes and the server stays


class ToolProcess:
    """The one object of the process."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self._registry = Registry()
        self._asking = Asking(self._send)
        self._calls: dict[str, anyio.CancelScope] = {}
        self._tasks: TaskGroup
        self._is_flushing = False

    async def run(self) -> None:
        """Take messages until the server is gone."""
        async with anyio.create_task_group() as self._tasks:
            try:
                while True:
                    await anyio.wait_readable(self._link.fileno())
                    for message, _ in self._link.receive():
                        await self._take(message)
            except (LinkClosedError, WireError):
                os._exit(0)

    async def _take(self, message: Mapping[str, Any]) -> None:
        match message["kind"]:
            case "load":
                await self._load(message["source"], message["roots"])
            case "execute" | "run":
                scope = anyio.CancelScope()
                self._calls[message["call"]] = scope
                self._tasks.start_soon(self._run, message, scope)
            case "stop":
                scope_of_call = self._calls.get(message["call"])
                if scope_of_call is not None:
                    scope_of_call.cancel()
            case "forget":
                self._registry.closures.pop(message["action_id"], None)
            case "answer":
                self._asking.take_answer(message)

    async def _load(self, source: Mapping[str, str], roots: list[str]) -> None:
        api = AuthorsApi(source["name"], self._asking, self._registry)
        try:
            loaded = await load(source, roots, api, self._registry)
        except LoadProblemError as problem:
            self._send({"kind": "refused", "problem": str(problem)})
            return
        self._send({"kind": "loaded", **loaded})

    async def _run(self, message: Mapping[str, Any], scope: anyio.CancelScope) -> None:
        call_id = message["call"]
        CURRENT.set(Call(call_id, Context(**message["context"])))
        try:
            with scope:
                result = await self._result(message)
            if scope.cancelled_caught:
                self._send({"kind": "failed", "call": call_id, "problem": "it was stopped"})
                return
            self._send({"kind": "done", "call": call_id, "result": result})
        except WireError as error:
            self._send({"kind": "failed", "call": call_id, "problem": f"its result can't be sent: {error}"})
        except BaseException as error:
            if not isinstance(error, CodespaceError):  # those say all there is to say
                logger.warning("%s failed", message.get("tool") or message.get("action_id"), exc_info=error)
            self._send({"kind": "failed", "call": call_id, **fault_of(error)})
        finally:
            self._calls.pop(call_id, None)
            self._asking.forget(call_id)

    async def _result(self, message: Mapping[str, Any]) -> dict[str, Any] | None:
        if message["kind"] == "execute":
            tool = self._registry.tools[message["tool"]]
            return await execute(tool, message["parameters"], Context(**message["context"]))
        return await call_back(self._registry, message)

    def _send(self, message: dict[str, Any]) -> None:
        try:
            self._link.send(message)
        except LinkClosedError:
            os._exit(0)
        if self._link.has_unsent and not self._is_flushing:
            self._is_flushing = True
            self._tasks.start_soon(self._flush)

    async def _flush(self) -> None:
        try:
            while self._link.has_unsent:
                await anyio.wait_writable(self._link.fileno())
                self._link.flush()
        except LinkClosedError:
            os._exit(0)
        finally:
            self._is_flushing = False
