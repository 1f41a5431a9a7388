"""Where time and randomness come from, so that a run is what its arguments say."""

from datetime import datetime
from typing import Protocol
from uuid import UUID


class Clock(Protocol):
    """Two clocks that never mix: one to tell people, one to measure by."""

    def now(self) -> datetime:
        """Return the wall clock: aware, UTC. May jump; orders nothing."""
        ...

    def monotonic(self) -> float:
        """Return seconds that never run backwards, for time limits."""
        ...


class Ids(Protocol):
    """A source of fresh identifiers."""

    def uuid(self) -> UUID:
        """Return a random UUIDv4 that was never returned before."""
        ...
