"""A log in PostgreSQL opened by a tool that only reads."""

from adapters.log.postgres import schema
from adapters.log.postgres.database import opening
from adapters.log.postgres.link import Link
from adapters.log.postgres.loop_thread import LoopThread
from adapters.log.postgres.reading_pool import READING
from adapters.settings.postgres_address import PostgresAddress


class ReadingLink(Link):
    """A connection with a thread of its own; closing it ends both."""

    def __init__(self, address: PostgresAddress, *, answer_seconds: float | None = None) -> None:
        """Connect to the log at `address`.

        Args:
            address: Whereto.
            answer_seconds: How long a statement may take; None: as long as it takes.

        Raises:
            LogMissingError: there is none.
            LogFormatError: it has a newer format.
            StoreUnavailableError: it can't be read.
        """
        self._thread = LoopThread()
        try:
            with opening(address):
                super().__init__(self._thread.portal, address, settings=READING, seconds=answer_seconds)
                try:
                    schema.check(self)
                except BaseException:
                    super().close()
                    raise
        except BaseException:
            self._thread.stop()
            raise

    def close(self) -> None:
        """Close it."""
        super().close()
        self._thread.stop()
