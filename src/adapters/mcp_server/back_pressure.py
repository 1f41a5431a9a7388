"""What a client may cost that asks for more than it reads: calls wait until the answers before them have gone out.

1. No request is begun while many bytes of earlier answers are unsent. Messages are still taken in meanwhile, so a
   cancellation, a signal and the end of input are seen.
2. Of the tools with large answers only a few calls run at a time: those that have begun are the rest of the bound. It
   also keeps worker threads free, so that many slow searches hold up no other tool.

Source: contract A6; field cases on one slow call that blocks the rest.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import anyio
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext

from adapters.mcp_server.stdio_pipe import WireOutput

CALLS_AT_ONCE: Mapping[str, int] = MappingProxyType({"read": 8, "find": 4, "search": 4})
"""By tool; their answers are bounded, but large. Every other tool's are small, or its own queue bounds its calls."""


class BackPressure:
    """A middleware of the SDK's server on one connection."""

    def __init__(self, output: WireOutput) -> None:
        self._output = output
        self._turns = {tool: anyio.Semaphore(calls, fast_acquire=True) for tool, calls in CALLS_AT_ONCE.items()}

    async def __call__(self, ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
        """Return the answer, asked for when there is room for it."""
        if ctx.request_id is None or ctx.method == "initialize":  # nothing may hold these up
            return await call_next(ctx)
        name = ctx.params.get("name") if ctx.method == "tools/call" and ctx.params is not None else None
        turns = self._turns.get(name) if isinstance(name, str) else None
        if turns is None:
            await self._output.wait_for_room()
            return await call_next(ctx)
        async with turns:
            await self._output.wait_for_room()
            return await call_next(ctx)
