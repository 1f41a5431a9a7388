"""A clock that a test moves by hand: the wall may be stepped either way, the other only runs."""

from datetime import UTC, datetime, timedelta


class HandClock:
    """Stands still until it is moved."""

    def __init__(self) -> None:
        self._now = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
        self._monotonic = 0.0

    def now(self) -> datetime:
        return self._now

    def monotonic(self) -> float:
        self._monotonic += 0.001
        return self._monotonic

    def step(self, seconds: float) -> None:
        """Move the wall clock, forwards or backwards."""
        self._now += timedelta(seconds=seconds)
