"""The hash chain: each event's hash covers the hash before it, so a change anywhere changes everything after.

Shape: SHA-256 over the previous hash, the position as u64, then for each of stream, version (as u64), topic and state
its length as u32 and its bytes; all integers big-endian. Every length is stated, so no two events share an encoding.
"""

import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from hashlib import sha256

GENESIS = bytes(32)
"""What stands before the first event."""

_POSITION_AND_STREAM_LENGTH = struct.Struct(">QI").pack
_VERSION_AND_TOPIC_LENGTH = struct.Struct(">IQI").pack
_STATE_LENGTH = struct.Struct(">I").pack

RawRow = tuple[int, str, int, str, bytes, bytes]
"""Position, stream, version, topic, state, hash: an event as it is stored."""


def link(  # noqa: PLR0917 - the order of the arguments is the order of the bytes
    previous: bytes, position: int, stream: bytes, version: int, topic: bytes, state: bytes
) -> bytes:
    """Return the 32 bytes of the hash of one event that follows the event with hash `previous`."""
    return sha256(b"".join((
        previous,
        _POSITION_AND_STREAM_LENGTH(position, len(stream)), stream,
        _VERSION_AND_TOPIC_LENGTH(8, version, len(topic)), topic,
        _STATE_LENGTH(len(state)), state,
    ))).digest()


@dataclass(frozen=True, slots=True)
class Break:
    """A place where the log isn't what was appended."""

    position: int
    problem: str


def find_breaks(rows: Iterable[RawRow], *, after: int = 0, previous: bytes = GENESIS) -> Iterator[Break]:
    """Yield each place of `rows` (in order of position) that doesn't follow from the row before it.

    Goes on from the stored hash after a break, so that one damaged row is reported once, not to the end of the log.

    Args:
        rows: All rows with a position > `after`.
        after: Position of the row before the first.
        previous: Its hash.
    """
    expected = after + 1
    for position, stream, version, topic, state, stored in rows:
        if position != expected:
            yield Break(expected, f"events {expected} to {position - 1} are missing")
        else:
            try:
                is_whole = link(previous, position, stream.encode(), version, topic.encode(), state) == stored
            except (AttributeError, TypeError, ValueError, struct.error):
                is_whole = False  # a value isn't even of its kind
            if not is_whole:
                yield Break(position, f"{stream}@{version} ({topic}) is not what was appended here")
        # A damaged hash can't begin the next link; genesis gives a second break there, as any wrong hash would.
        previous = stored if isinstance(stored, bytes) else GENESIS
        expected = position + 1
