"""The window on an output against the most naive model: a list of everything that was ever printed."""

import errno
import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.runner.output_window import FileRing, MemoryRing, OutputWindow, Ring, make_ring

pieces = st.lists(st.binary(max_size=40), max_size=30)


def make(kind: str, capacity: int) -> Ring:
    return MemoryRing(capacity) if kind == "memory" else FileRing(capacity)


@pytest.mark.parametrize("kind", ["memory", "file"])
@given(printed=pieces, capacity=st.integers(1, 50), head_bytes=st.integers(0, 60),
       asked=st.tuples(st.integers(0, 300), st.integers(0, 100)))
def test_the_window_holds_exactly_the_last_bytes_and_counts_all(
    kind: str, printed: list[bytes], capacity: int, head_bytes: int, asked: tuple[int, int]
) -> None:
    cursor, bytes_max = asked
    ring = make(kind, capacity)
    window = OutputWindow(ring, head_bytes=head_bytes)
    everything = b""
    for piece in printed:
        window.append(piece)
        everything += piece
        retained_from = max(0, len(everything) - capacity)
        assert (window.total, window.retained_from) == (len(everything), retained_from)
        assert window.head == everything[:head_bytes]
        start = max(cursor, retained_from)
        assert window.read(cursor, bytes_max) == (start, everything[start : start + bytes_max])
        assert window.read(0, capacity) == (retained_from, everything[retained_from:])
    ring.close()


@pytest.mark.parametrize("kind", ["memory", "file"])
@given(printed=st.lists(st.integers(0, 50_000), max_size=12), capacity=st.sampled_from([10_000, 65_536, 70_001]),
       head_bytes=st.sampled_from([0, 1_000, 90_000]))
def test_what_is_read_right_into_the_window_is_what_was_printed(
    kind: str, printed: list[int], capacity: int, head_bytes: int
) -> None:
    """Through a real pipe, round a ring that has been filled as before it has."""
    window = OutputWindow(make(kind, capacity), head_bytes=head_bytes)
    everything = b""
    reading, writing = os.pipe()
    os.set_blocking(reading, False)
    for number, size in enumerate(printed):
        piece = (b"%d,%d;" % (number, size) * (size // 4 + 1))[:size]
        everything += piece
        os.write(writing, piece)
        while True:
            try:
                window.take_from(reading)
            except BlockingIOError:
                break
        retained_from = max(0, len(everything) - capacity)
        assert (window.total, window.retained_from) == (len(everything), retained_from)
        assert window.read(0, capacity) == (retained_from, everything[retained_from:])
    os.close(writing)
    assert window.take_from(reading) == 0
    assert window.head == everything[:head_bytes]
    os.close(reading)
    window.close()
    window.close()


@given(printed=pieces, capacity=st.integers(1, 50))
def test_reading_on_from_each_chunk_loses_nothing_while_it_is_retained(printed: list[bytes], capacity: int) -> None:
    window = OutputWindow(MemoryRing(capacity), head_bytes=0)
    everything, seen, lost, cursor = b"", b"", 0, 0
    for piece in printed:
        window.append(piece)
        everything += piece
        start, content = window.read(cursor, 1000)
        lost += start - cursor
        seen += content
        cursor = start + len(content)
    assert len(seen) + lost == len(everything)
    assert everything.endswith(seen[-capacity:])


def test_a_small_window_is_in_memory_and_a_large_one_on_disk() -> None:
    assert isinstance(make_ring(1 << 20), MemoryRing)
    ring = make_ring((1 << 20) + 1)
    assert isinstance(ring, FileRing)
    ring.close()


def test_a_window_whose_disk_is_full_goes_on_in_memory_and_says_what_is_lost() -> None:
    class FullRing(MemoryRing):
        def write(self, offset: int, content: memoryview) -> None:
            if offset + len(content) > 10:
                raise OSError(errno.ENOSPC, "full")
            super().write(offset, content)

    window = OutputWindow(FullRing(1 << 20), head_bytes=4)
    window.append(b"0123456789")
    window.append(b"abc")
    assert (window.retained_from, window.total) == (10, 13)
    assert window.read(0, 100) == (10, b"abc")
    assert window.head == b"0123"
