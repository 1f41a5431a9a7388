"""Fault hooks: record, fail or play a death at the k-th point; and what the sweeps ran."""

import errno
import os
from dataclasses import dataclass, field

from codespace_es.ports.fault_points import FaultPoint


@dataclass
class Recorder:
    """Remembers every point that was hit."""

    points: list[FaultPoint] = field(default_factory=list)

    def __call__(self, point: FaultPoint) -> None:
        self.points.append(point)


@dataclass
class FailAt:
    """Raises an OSError at the k-th hit; at every later one too if it `is_sticky`."""

    k: int
    number: int = errno.EIO
    is_sticky: bool = False
    hits: int = 0
    points: list[FaultPoint] = field(default_factory=list)

    def __call__(self, point: FaultPoint) -> None:
        self.hits += 1
        self.points.append(point)
        if self.hits == self.k or (self.is_sticky and self.hits > self.k):
            raise OSError(self.number, os.strerror(self.number))


class Death(BaseException):
    """The end of a process, played in this one."""


TOTALS: dict[str, int] = {}
"""What the sweeps ran, printed at the end of the session."""
HIT_POINTS: set[FaultPoint] = set()
"""Every point that a sweep died or failed at."""


def count(name: str, runs: int) -> None:
    """Add `runs` to the total called `name`."""
    TOTALS[name] = TOTALS.get(name, 0) + runs
