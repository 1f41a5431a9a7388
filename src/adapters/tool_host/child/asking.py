"""Asking the server on behalf of the call that is running; after its end nothing can be asked for it any more."""

import threading
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

import anyio

from codespace_es.tools import CodespaceError, Context, ErrorCode

OnAnswer = Callable[[Mapping[str, Any]], None]

STORE_UNAVAILABLE = "Pending action store unavailable for custom tools in this runtime."


@dataclass(frozen=True, slots=True)
class Call:
    """A call or callback that is running."""

    call_id: str
    context: Context


CURRENT: ContextVar[Call | None] = ContextVar("current_call", default=None)
"""The call in which this code runs; none while a file is loaded."""


@dataclass(slots=True)
class _Asked:
    call_id: str
    is_answered: anyio.Event
    on_answer: OnAnswer | None
    answer: Mapping[str, Any] | None = None


class Asking:
    """What was asked of the server and isn't answered yet."""

    def __init__(self, send: Callable[[dict[str, Any]], None]) -> None:
        self._send = send
        self._asked: dict[int, _Asked] = {}
        self._last = 0
        self._thread = threading.get_ident()

    async def ask(
        self, method: str, parameters: Mapping[str, Any], *, on_answer: OnAnswer | None = None
    ) -> dict[str, Any]:
        """Return what the server answers; `on_answer` is told of it before any later message is taken.

        Raises:
            CodespaceError: the server refused, or it failed.
            RuntimeError: no tool is running here, or this is another thread than the event loop's.
        """
        call = CURRENT.get()
        if call is None:
            raise RuntimeError(f"api.{method} works only while a tool runs, not while its file is loaded.")
        if threading.get_ident() != self._thread:
            raise RuntimeError(f"From a thread, write anyio.from_thread.run(api.{method}, …).")
        self._last += 1
        asked = self._asked[self._last] = _Asked(call.call_id, anyio.Event(), on_answer)
        try:
            self._send({
                "kind": "asks", "call": call.call_id, "request": self._last, "method": method, "parameters": parameters,
            })
            await asked.is_answered.wait()
        finally:
            self._asked = {number: each for number, each in self._asked.items() if each is not asked}
        assert asked.answer is not None, "it was answered"
        return _result(asked.answer)

    def take_answer(self, message: Mapping[str, Any]) -> None:
        """Give an answer to whoever waits for it."""
        asked = self._asked.get(message["request"])
        if asked is None:
            return
        asked.answer = message
        if asked.on_answer is not None and "error" not in message:
            asked.on_answer(message["result"])
        asked.is_answered.set()

    def forget(self, call_id: str) -> None:
        """End what still waits for a call that is over."""
        fault = {"code": ErrorCode.TOOL_FAILED, "message": "The call that asked is over.", "detail": {}}
        for asked in self._asked.values():
            if asked.call_id == call_id and asked.answer is None:
                asked.answer = {"error": fault}
                asked.is_answered.set()


def _result(answer: Mapping[str, Any]) -> dict[str, Any]:
    fault = answer.get("error")
    if fault is not None:
        raise CodespaceError(ErrorCode(fault["code"]), fault["message"], detail=fault["detail"])
    result = answer["result"]
    assert isinstance(result, dict)
    return result
