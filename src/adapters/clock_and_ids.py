"""The system's clocks and randomness. The only adapter that reads either, so that everything else can be replayed."""

import time
import uuid
from datetime import UTC, datetime
from uuid import UUID


class SystemClock:
    """The clocks of this machine. Implements `Clock`."""

    def now(self) -> datetime:
        """Return the wall clock: aware, UTC."""
        return datetime.now(UTC)

    def monotonic(self) -> float:
        """Return seconds that never run backwards."""
        return time.monotonic()


class RandomIds:
    """Ids from the system's randomness. Implements `Ids`."""

    def uuid(self) -> UUID:
        """Return a random UUIDv4."""
        return uuid.uuid4()
