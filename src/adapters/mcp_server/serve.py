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

_LAST_CALLS_SECONDS = 0.5
"""After the end of input, how long calls go on as if nothing had happened: what was piped in is mostly done by then."""

_LAST_BYTES_SECONDS = 1
"""Once every call has its answer, how long a client that reads nothing can hold up the end; and then once more."""


async def serve_stdio(
    codespace: Codespace, life: InstanceLife, *, resolve_listing: Literal["always", "while-pending"] = "always"
) -> StopReason:
    """Serve until the input ends, a signal comes or nobody reads the output; return which it was.

    Then no call is begun any more, and each that is open is answered before the output is closed (`Codespace.close`).
    """
    server = build_server(codespace, life, resolve_listing=resolve_listing)
    async with open_stdio() as wire:
        server.middleware.insert(0, BackPressure(wire.output))
        tasks: TaskGroup
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_end_on_signal, wire)
            tasks.start_soon(wire.output.watch)
            served = anyio.Event()
            with anyio.CancelScope(shield=True) as serving:
                tasks.start_soon(_see_to_the_end, wire, codespace, serving, served)
                await server.run(wire.input, wire.output, server.create_initialization_options())
            served.set()
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


async def _see_to_the_end(
    wire: Wire, codespace: Codespace, serving: anyio.CancelScope, served: anyio.Event
) -> None:
    """Once the end has come, or this wait is cancelled since the log is gone: have everything answered, then finish."""
    try:
        await wire.ended.wait()
    finally:
        with anyio.CancelScope(shield=True):
            try:
                await _answer_all(wire, codespace)
            finally:
                wire.finish()
                with anyio.move_on_after(_LAST_BYTES_SECONDS):
                    await served.wait()
                serving.cancel()


async def _answer_all(wire: Wire, codespace: Codespace) -> None:
    """Return once every call has its answer, and that was read if its client reads at all."""
    if wire.reason == "output_closed":
        return
    if wire.reason == "eof":
        with anyio.move_on_after(_LAST_CALLS_SECONDS):
            await wire.wait_until_answered()
    await codespace.close(quiet_caller(codespace.world))
    with anyio.move_on_after(_LAST_BYTES_SECONDS):
        await wire.wait_until_answered()
