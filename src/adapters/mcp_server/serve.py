"""Serving one client over stdio, from the first message to a clean end."""

import signal
from typing import Literal

import anyio
from anyio.abc import TaskGroup

from adapters.mcp_server.back_pressure import BackPressure
from adapters.mcp_server.server import build_server
from adapters.mcp_server.stdio_pipe import StopReason, Wire, open_stdio
from codespace_es.aggregates.instance import InstanceStopped
from codespace_es.codespace import Codespace
from codespace_es.command_handlers.instance_life import InstanceLife, quiet_caller

_ENDING_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)

_END_SECONDS_MAX = 2
"""After the end has come, how long a client that reads nothing can hold it up."""


async def serve_stdio(
    codespace: Codespace, life: InstanceLife, *, resolve_listing: Literal["always", "while-pending"] = "always"
) -> StopReason:
    """Serve until the input ends, a signal comes or nobody reads the output; return which it was.

    Calls that wait are cancelled then; effects that have begun are waited for, so that they end before the instance.
    """
    server = build_server(codespace, life, resolve_listing=resolve_listing)
    async with open_stdio() as wire:
        server.middleware.insert(0, BackPressure(wire.output))
        tasks: TaskGroup
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_end_on_signal, wire)
            tasks.start_soon(wire.output.watch)
            tasks.start_soon(_end_at_last, wire, tasks.cancel_scope)
            await server.run(wire.input, wire.output, server.create_initialization_options())
            with anyio.CancelScope(shield=True):
                await codespace.close(quiet_caller(codespace.world))
            tasks.cancel_scope.cancel()
    _ignore_later_signals()
    reason = wire.reason or "eof"
    life.stop_because(InstanceStopped(reason=reason))
    return reason


async def _end_on_signal(wire: Wire) -> None:
    """End the connection at the first signal; later ones change nothing, since the end is on its way."""
    with anyio.open_signal_receiver(*_ENDING_SIGNALS) as signals:
        async for _number in signals:
            wire.end("signal")


def _ignore_later_signals() -> None:
    """Let nothing interrupt the last milliseconds: clients send SIGINT, then SIGTERM a moment later.

    What is left is bounded: the log says that this instance has stopped, and the process ends.
    """
    for number in _ENDING_SIGNALS:
        signal.signal(number, signal.SIG_IGN)


async def _end_at_last(wire: Wire, scope: anyio.CancelScope) -> None:
    await wire.ended.wait()
    await anyio.sleep(_END_SECONDS_MAX)
    scope.cancel()
