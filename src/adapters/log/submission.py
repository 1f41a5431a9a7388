"""One append on its way: prepared by its caller, stored by the writer thread, answered to its caller."""

from collections.abc import Callable
from typing import NamedTuple

from codespace_es.ports.log import OpenChange

BodyRow = tuple[str, bytes, str, int, int, bytes]
"""Stream, digest (32 bytes), kind, size in bytes, stored at (milliseconds since 1970), content."""


class NewRow(NamedTuple):
    """An event as it will be stored; position and hash come with the transaction."""

    stream_id: str
    stream: bytes
    version: int
    topic: str
    topic_bytes: bytes
    state: bytes
    change: OpenChange | None = None


class Submission:
    """What to store, and what came of it. Exactly one of `positions` and `error` is set when `wake` is called."""

    __slots__ = ("bodies", "error", "instance_id", "is_gapless", "large_bodies", "last_hash", "positions", "rows",
                 "scrubbed", "starts_instance", "touches_instance", "wake")

    def __init__(
        self,
        rows: list[NewRow],
        wake: Callable[[], None],
        *,
        bodies: list[BodyRow] | None = None,
        large_bodies: list[BodyRow] | None = None,
        scrubbed: list[tuple[str, bytes]] | None = None,
        instance_id: str | None = None,
        is_gapless: bool = True,
    ) -> None:
        self.rows = rows
        self.wake = wake
        """Called once it is settled, where the writer announces it."""
        self.bodies = bodies or []
        self.large_bodies = large_bodies or []
        """To be stored in transactions of their own first."""
        self.scrubbed = scrubbed or []
        self.instance_id = instance_id
        """Whose append it is, and who must be open; None: nobody's, not checked."""
        self.is_gapless = is_gapless
        self.starts_instance = False
        self.touches_instance = False
        for row in rows:
            if row.change is not None and row.stream_id == instance_id:
                self.touches_instance = True
                self.starts_instance |= any(kind == "instance" for kind, _ in row.change.opens)
        self.positions: tuple[int, int] | None = None
        self.error: BaseException | None = None
        self.last_hash = b""

    def refuse(self, error: BaseException) -> None:
        """Settle it as not stored."""
        self.positions = None
        self.error = error
