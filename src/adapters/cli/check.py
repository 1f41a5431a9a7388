"""One thing that `doctor` looked at."""

from dataclasses import dataclass
from typing import Literal

Verdict = Literal["ok", "warning", "bad"]


@dataclass(frozen=True, slots=True)
class Check:
    """What was found."""

    name: str
    verdict: Verdict
    told: str
