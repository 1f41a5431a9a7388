"""Input for a terminal, written to a model of its line discipline: nothing is lost, nothing ends too early."""

from hypothesis import given
from hypothesis import strategies as st

from adapters.runner.input_queue import CanonicalMode, InputQueue

END, ERASE, KILL = 4, 127, 21
MODE = CanonicalMode(END, b"\n", bytes([ERASE, KILL, 1, 2, 3]))


class LineDiscipline:
    """What a terminal in canonical mode does: collects a line of at most 4,095 bytes, drops what is beyond."""

    def __init__(self) -> None:
        self.line = b""
        self.delivered = b""
        self.dropped = 0
        self.ends = 0

    def take(self, written: bytes) -> None:
        for byte in written:
            if byte == END:
                self.ends += not self.line
                self.delivered, self.line = self.delivered + self.line, b""
            elif byte == ERASE:
                self.line = self.line[:-1]
            elif byte == KILL:
                self.line = b""
            elif byte == ord("\n"):
                self.delivered, self.line = self.delivered + self.line + b"\n", b""
            elif len(self.line) < 4095:
                self.line += bytes([byte])
            else:
                self.dropped += 1


def send_all(queue: InputQueue, terminal: LineDiscipline, steps: list[int]) -> None:
    index = 0
    while not queue.is_empty:
        piece = queue.next_piece(MODE)
        count = min(len(piece), steps[index % len(steps)])
        index += 1
        terminal.take(bytes(piece[:count]))
        queue.take(count, MODE)


plain = st.text("ab\n", max_size=30)
long_lines = st.lists(
    st.one_of(plain, st.integers(3900, 9000).map(lambda n: "x" * n), st.sampled_from(["\x7f", "\x15", "\x7f\x7f"])),
    min_size=1, max_size=6)
steps = st.lists(st.integers(1, 5000), min_size=1, max_size=5)


@given(parts=st.lists(st.one_of(plain, st.integers(3900, 9000).map(lambda n: "x" * n)), min_size=1, max_size=6),
       steps=steps)
def test_long_lines_reach_the_child_whole_and_the_end_comes_once(parts: list[str], steps: list[int]) -> None:
    queue, terminal = InputQueue(), LineDiscipline()
    for part in parts:
        queue.put(part.encode(), is_eof=False)
    queue.put(b"", is_eof=True)
    send_all(queue, terminal, steps)
    assert terminal.delivered == "".join(parts).encode()
    assert (terminal.dropped, terminal.ends) == (0, 1)
    assert queue.size_bytes == 0


@given(parts=long_lines, steps=steps)
def test_editing_characters_never_make_an_end_of_input(parts: list[str], steps: list[int]) -> None:
    queue, terminal = InputQueue(), LineDiscipline()
    for part in parts:
        queue.put(part.encode(), is_eof=False)
    send_all(queue, terminal, steps)
    assert terminal.ends == 0


@given(parts=st.lists(st.binary(max_size=200_000), max_size=4), steps=st.lists(st.integers(1, 100_000), min_size=1))
def test_a_pipe_gets_the_bytes_as_they_are_in_order(parts: list[bytes], steps: list[int]) -> None:
    queue, written, index = InputQueue(), b"", 0
    for part in parts:
        queue.put(part, is_eof=False)
    queue.put(b"", is_eof=True)
    while not queue.is_at_end:
        piece = queue.next_piece(None)
        count = min(len(piece), steps[index % len(steps)])
        written += bytes(piece[:count])
        queue.take(count, None)
        index += 1
    queue.take_end()
    assert written == b"".join(parts)
    assert queue.is_empty
