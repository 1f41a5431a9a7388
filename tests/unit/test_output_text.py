"""Text from raw output: whole characters, nothing lost, nothing twice, however it is cut and however it comes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codespace_es.projections.output_text import CHARACTER_BYTES_MAX, skip_broken_start, take_text


def read_all(content: bytes, bytes_max: int) -> list[str]:
    """Read the whole of an ended output as a client does, from cursor to cursor."""
    pieces, cursor = [], 0
    while cursor < len(content):
        fetched = content[cursor : cursor + bytes_max + CHARACTER_BYTES_MAX - 1]
        text, used = take_text(fetched, bytes_max, is_end=cursor + len(fetched) == len(content))
        assert used > 0, "a reader always gets on"
        pieces.append(text)
        cursor += used
    return pieces


@given(st.text(), st.integers(1, 12))
def test_text_comes_whole_in_pieces_of_any_size(text, bytes_max):
    pieces = read_all(text.encode("utf-8", "replace"), bytes_max)
    assert "".join(pieces) == text.encode("utf-8", "replace").decode()
    assert all(len(piece.encode()) <= max(bytes_max, CHARACTER_BYTES_MAX) for piece in pieces)


@given(st.binary(max_size=60), st.integers(1, 12))
def test_any_bytes_are_read_to_their_end(content, bytes_max):
    read_all(content, bytes_max)


@given(st.text(min_size=1), st.data())
def test_the_beginning_of_a_character_is_left_for_the_next_read(text, choices):
    content = text.encode("utf-8", "replace")
    cut = choices.draw(st.integers(0, len(content)))
    first, used = take_text(content[:cut], 1_000, is_end=False)
    rest, _ = take_text(content[used:], 1_000, is_end=True)
    assert cut - used < CHARACTER_BYTES_MAX
    assert first + rest == content.decode()


@pytest.mark.parametrize(("content", "text"), [
    (b"\xe2\x82", "\ufffd"), (b"a\xff", "a\ufffd"), (b"\xe2\x82A", "\ufffdA"), (b"", ""),
])
def test_what_can_never_be_whole_is_replaced_at_the_end(content, text):
    assert take_text(content, 100, is_end=True) == (text, len(content))


def test_a_character_that_is_not_there_yet_is_waited_for():
    assert take_text(b"\xe2\x82", 100, is_end=False) == ("", 0)
    assert take_text(b"a\xe2\x82", 100, is_end=False) == ("a", 1)


@given(st.text(alphabet="é€🙂a", min_size=1), st.integers(1, 3))
def test_a_window_that_begins_in_a_character_is_read_from_the_next(text, dropped):
    content = text.encode()[dropped:]
    skipped = skip_broken_start(content)
    assert skipped < CHARACTER_BYTES_MAX
    content[skipped:].decode()
