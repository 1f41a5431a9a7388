"""What a child says of itself once, to whoever waits for it at its gate: that it is ready, or why it can't be."""

from __future__ import annotations

import json

READY = b"ready"
REPORT_BYTES_MAX = 4096
"""So much a pipe takes whole or not at all."""
_PROBLEM_CHARACTERS_MAX, _REASON_CHARACTERS_MAX = 220, 100
"""A character may take 12 bytes of a report."""


class NotReadyError(Exception):
    """The child couldn't be set up, so nothing will run. Carries the system's errno."""

    def __init__(self, message: str, errno: int | None) -> None:
        super().__init__(message)
        self.errno = errno


def not_ready(problem: str, reason: str, errno: int | None) -> bytes:
    """Return what a child reports that can't be set up."""
    told = {"errno": errno, "message": f"{problem[:_PROBLEM_CHARACTERS_MAX]}: {reason[:_REASON_CHARACTERS_MAX]}."}
    return json.dumps(told).encode("ascii")


def require_ready(report: bytes) -> None:
    """Pass if a child has reported that it is ready; empty: it has ended without a word. Raises NotReadyError."""
    if report == READY:
        return
    if not report:
        raise NotReadyError("The child ended before it was set up.", None)
    told = json.loads(report)
    raise NotReadyError(told["message"], told["errno"])
