"""The connections on which a running server reads, on its event loop: few, read-only, made anew when they are lost."""

import time
from collections.abc import Sequence
from typing import Any

import anyio

from adapters.log.postgres.connecting import PostgresConnection, PostgresError, connect
from adapters.settings.postgres_address import PostgresAddress

CONNECTIONS_MAX = 4

PATIENCE_SECONDS = 10.0
"""How long a read goes on trying: a server that was restarted is back by then, and its callers never knew."""

_PATIENCE_WHEN_AWAY_SECONDS = 2.0
"""How long a read goes on trying where the read before it has found nobody."""

_PAUSE_SECONDS = 0.1
_STATEMENT_SECONDS = 30.0

READING = {"default_transaction_read_only": "on"}
"""The settings of a session that reads."""


class ReadingPool:
    """Reads on one event loop."""

    def __init__(self, address: PostgresAddress) -> None:
        self._address = address
        self._idle: list[PostgresConnection] = []
        self._turns = anyio.Semaphore(CONNECTIONS_MAX)
        self._away: str | None = None
        """Why the newest read found nobody, None if the server has answered."""
        self._is_closed = False

    async def fetch(self, statement: str, parameters: Sequence[Any]) -> list[Any]:
        """Return the rows of a query; try again on a new connection if one is lost on the way.

        Raises:
            PostgresError: it can't be read now.
        """
        patience = PATIENCE_SECONDS if self._away is None else _PATIENCE_WHEN_AWAY_SECONDS
        deadline = time.monotonic() + patience
        async with self._turns:
            if self._away is not None and time.monotonic() > deadline:
                raise PostgresError(self._away, is_unanswered=True)  # those before it have waited for it, too
            while True:
                try:
                    rows = await self._try(statement, parameters)
                except PostgresError as error:
                    if not error.is_passing:
                        self._away = None
                        raise
                    if time.monotonic() > deadline:
                        self._away = str(error)
                        raise
                else:
                    self._away = None
                    return rows
                if not self._idle:  # what is left idle is broken in all likelihood too, and tried at once
                    await anyio.sleep(_PAUSE_SECONDS)

    async def _try(self, statement: str, parameters: Sequence[Any]) -> list[Any]:
        connection = self._idle.pop() if self._idle else await connect(self._address, settings=READING)
        try:
            rows = await connection.fetch(statement, parameters, seconds=_STATEMENT_SECONDS)
        except PostgresError as error:
            if not error.is_unanswered:
                self._give_back(connection)
            raise
        self._give_back(connection)
        return rows

    def _give_back(self, connection: PostgresConnection) -> None:
        if self._is_closed:
            connection.terminate()
        else:
            self._idle.append(connection)

    async def aclose(self) -> None:
        """Close what is idle; what is in use is dropped when it is given back."""
        self._is_closed = True
        while self._idle:
            await self._idle.pop().close()
