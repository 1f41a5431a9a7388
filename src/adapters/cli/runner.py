"""`runner`: run commands for servers that were started elsewhere, over a socket."""

import signal
from collections.abc import AsyncIterator

import anyio
import click

from adapters.settings.problem import StartupError


@click.command()
@click.option("--socket", "path", required=True, metavar="PATH",
              help="Where to listen: a socket in a directory that only you may write.")
def runner(*, path: str) -> None:
    """Run the commands of servers that ask for it over a socket.

    A server does with CODESPACE_RUNNER=uds and CODESPACE_RUNNER_SOCKET=PATH. Both have to see the same files under the
    same names, and belong to the same user. Its commands end when either ends. It runs until SIGTERM, SIGINT or SIGHUP.
    """
    anyio.run(_serve, path)


async def _serve(path: str) -> None:
    from adapters.runner.uds_runner import serve_runner

    problem: OSError | None = None
    with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT, signal.SIGHUP) as signals:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_end_at, signals, tasks.cancel_scope)
            try:
                await serve_runner(path)
            except OSError as error:
                problem = error
                tasks.cancel_scope.cancel()
    if problem is not None:
        reason = str(problem.strerror or problem).rstrip(".")
        raise StartupError(f"The runner can't serve {path}: {reason}.") from problem


async def _end_at(signals: AsyncIterator[signal.Signals], scope: anyio.CancelScope) -> None:
    async for _ in signals:
        scope.cancel()
