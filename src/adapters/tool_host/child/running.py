"""Running what authors wrote: `execute` and the callbacks of pending actions, and reading what they return."""

import inspect
import json
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from anyio import to_thread

from adapters.tool_host.child.checking import LoadedTool
from adapters.tool_host.child.loading import Registry
from adapters.tool_host.child.telling import to_json
from codespace_es.tools import CodespaceError, Context, ErrorCode, ToolResult
from codespace_es.vocabulary import limits


async def execute(tool: LoadedTool, given: Mapping[str, Any], context: Context) -> dict[str, Any]:
    """Return what a tool answers to `given`. Raises whatever it raises, and INVALID_ARGUMENT."""
    result = await call(tool.execute, context.call_id, tool.read(given), context)
    return result_of(result, "execute") or {"content": "", "details": None, "is_error": False}


async def call_back(registry: Registry, message: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return what `apply` or `reject` of a pending action answers; None where there is nothing, or it says nothing.

    A closure stays until the server lets go of it: what it staged may still be refused, and it be applied again.
    """
    action_id, name = message["action_id"], message["action"]
    callbacks = registry.closures.get(action_id) if name is None else registry.actions[name]
    if callbacks is None:
        raise CodespaceError(ErrorCode.TOOL_FAILED, "The callbacks of this action are gone.")
    is_apply = message["decision"] == "apply"
    callback = callbacks.apply if is_apply else callbacks.reject
    result = None
    if callback is not None:
        arguments = _arguments(callback, message["reason"], Context(**message["context"]))
        result = result_of(await call(callback, *arguments), message["decision"])
    return result


async def call(function: Callable[..., Any], *arguments: Any) -> Any:
    """Return what `function` returns; one that isn't async runs in a thread, so that it holds up nobody else."""
    called = function if inspect.isroutine(function) else type(function).__call__
    if inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(called):
        return await function(*arguments)
    result = await to_thread.run_sync(partial(function, *arguments))
    return await result if inspect.isawaitable(result) else result


def _arguments(callback: Callable[..., Any], reason: str, context: Context) -> tuple[Any, ...]:
    """Return what a callback takes: the reason, and the context where it has a place for it.

    A second parameter with a default is the author's own (`lambda reason, files=files: …`), unless its name says it.
    """
    try:
        parameters = [
            each for each in inspect.signature(callback).parameters.values()
            if each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD)
        ]
    except (TypeError, ValueError):
        return (reason,)
    if len(parameters) > 1 and (parameters[1].default is inspect.Parameter.empty or parameters[1].name == "context"):
        return (reason, context)
    return (reason,)


def result_of(result: Any, function: str) -> dict[str, Any] | None:
    """Return a result as JSON. Raises TypeError, ValueError for what can't be one."""
    if result is None:
        return None
    if isinstance(result, str):
        result = ToolResult(result)
    if not isinstance(result, ToolResult):
        raise TypeError(f"{function} returned {type(result).__name__}; return a string or a ToolResult")
    if not isinstance(result.content, str):
        raise TypeError(f"the content of a ToolResult is a string, not {type(result.content).__name__}")
    wire = {"content": result.content, "details": result.details, "is_error": bool(result.is_error)}
    to_json(wire, "details")
    try:
        size = len(json.dumps(wire, ensure_ascii=False).encode())
    except UnicodeEncodeError:
        raise ValueError(f"{function} returned what isn't valid Unicode") from None
    if size > limits.TOOL_RESULT_BYTES_MAX:
        raise ValueError(f"{function} returned {size} bytes; the limit is {limits.TOOL_RESULT_BYTES_MAX}")
    return wire
