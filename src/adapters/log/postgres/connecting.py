"""PostgreSQL itself: which driver is bound, how its connections are opened, and what its errors mean.

The only module that names the driver. It is asynchronous: a connection belongs to one event loop.
"""

from collections.abc import Sequence
from functools import cache
from typing import Any

import anyio

from adapters.settings.postgres_address import PostgresAddress
from codespace_es.ports.log import StoreUnavailableError

CONNECT_SECONDS = 5.0
"""How long one attempt to connect may take."""

_MISSING = "PostgreSQL needs the driver asyncpg: pip install 'codespace-es[postgres]'"

_UNANSWERED_CLASSES = ("08", "57P")
"""SQLSTATEs after which nobody knows whether the statement was done: connection exceptions, shutdowns, crashes.

57014 (cancelled) isn't one: a cancelled statement was rolled back.
"""

_PASSING_STATES = frozenset({"57P03", "53300", "53400", "55P03", "40001", "40P01", "57014"})
"""The same may succeed soon: starting up, too many connections, locked for long, serialisation, time limits."""


class PostgresError(StoreUnavailableError):
    """What PostgreSQL, or the way to it, refused."""

    def __init__(self, message: str, *, sqlstate: str | None = None, is_unanswered: bool = False) -> None:
        super().__init__(message)
        self.sqlstate = sqlstate
        self.is_unanswered = is_unanswered
        """The connection is gone, and whether the statement was done isn't known."""

    @property
    def is_passing(self) -> bool:
        """The same may succeed soon, on a new connection."""
        return self.is_unanswered or self.sqlstate in _PASSING_STATES


class PostgresConnection:
    """One connection of the driver; what goes wrong on it is a `PostgresError`."""

    def __init__(self, raw: Any, address: PostgresAddress) -> None:
        self._raw = raw
        self._address = address

    async def fetch(
        self, statement: str, parameters: Sequence[Any] = (), /, *, seconds: float | None = None
    ) -> list[Any]:
        """Return the rows of one statement with `?` for each parameter.

        Args:
            statement: SQL.
            parameters: Values in order.
            seconds: How long it may take; the connection is given up then. None: as long as it takes.

        Raises:
            PostgresError: it failed, or its answer is missing.
        """
        try:
            with anyio.fail_after(seconds):
                return list(await self._raw.fetch(numbered(statement), *parameters))
        except BaseException as error:
            if not isinstance(error, Exception):  # cancelled: what it was doing nobody waits for
                self.terminate()
                raise
            raise self._translated(error) from error

    async def copy_in(self, table: str, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
        """Store many rows. Raises PostgresError."""
        try:
            await self._raw.copy_records_to_table(table, columns=list(columns), records=rows)
        except Exception as error:
            raise self._translated(error) from error

    @property
    def is_closed(self) -> bool:
        """Whether it is known to be gone, so that nothing can be sent on it."""
        return bool(self._raw.is_closed())

    def _translated(self, error: Exception) -> PostgresError:
        translated = translate(error, self._address)
        if translated.is_unanswered:
            self.terminate()
        return translated

    def terminate(self) -> None:
        """Drop it without a word: a peer that doesn't answer would be waited for."""
        self._raw.terminate()

    async def close(self) -> None:
        """Say goodbye, and drop it if that isn't answered soon."""
        with anyio.move_on_after(CONNECT_SECONDS, shield=True) as scope:
            try:
                await self._raw.close()
            except Exception:
                self.terminate()
        if scope.cancelled_caught:
            self.terminate()


async def connect(address: PostgresAddress, *, settings: dict[str, str]) -> PostgresConnection:
    """Return a new connection, whose statements are transactions of their own unless they say otherwise.

    Raises:
        PostgresError: it can't be made; `is_passing` if it may be made soon.
    """
    try:
        import asyncpg
    except ImportError as error:
        raise PostgresError(_MISSING) from error
    try:
        with anyio.fail_after(CONNECT_SECONDS):
            raw = await asyncpg.connect(address.url, server_settings={
                "application_name": "codespace-es",
                "default_transaction_isolation": "read committed",
                **settings,
            })
    except Exception as error:
        raise translate(error, address) from error
    return PostgresConnection(raw, address)


def translate(error: Exception, address: PostgresAddress) -> PostgresError:
    """Return what an error of the driver, or of the way to the server, means; without secrets."""
    import asyncpg

    if isinstance(error, PostgresError):
        return error
    words = address.without_secrets(str(error)).split()  # details and hints stand on lines of their own
    text = " ".join(words) or type(error).__name__
    sqlstate = getattr(error, "sqlstate", None)
    if isinstance(error, asyncpg.DataError | asyncpg.exceptions.ClientConfigurationError):
        return PostgresError(text, sqlstate=sqlstate)  # never sent
    if isinstance(sqlstate, str):
        return PostgresError(text, sqlstate=sqlstate, is_unanswered=sqlstate.startswith(_UNANSWERED_CLASSES))
    if isinstance(error, TimeoutError):
        return PostgresError("PostgreSQL doesn't answer", is_unanswered=True)
    if isinstance(error, OSError | asyncpg.InterfaceError | asyncpg.InternalClientError):
        return PostgresError(text, is_unanswered=True)
    return PostgresError(text)


@cache
def numbered(statement: str) -> str:
    """Return `statement` with `$1`, `$2`… for its `?`."""
    first, *rest = statement.split("?")
    return first + "".join(f"${number}{part}" for number, part in enumerate(rest, start=1))
