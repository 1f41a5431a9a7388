"""The locator against a slow and obvious one, and the price of a search that fails."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codespace_es.v4a import chunk_locator
from codespace_es.v4a.chunk_locator import ChunkLocator
from codespace_es.v4a.linear_search import occurrences
from codespace_es.v4a.nearest import nearest_place

SPACE = {*range(0x9, 0xE), 0x20, 0x85, 0xA0, 0x1680, *range(0x2000, 0x200B), 0x2028, 0x2029, 0x202F, 0x205F, 0x3000}
FOLDS = {**dict.fromkeys([*range(0x2010, 0x2016), 0x2212], "-"), **dict.fromkeys(range(0x2018, 0x201C), "'"),
         **dict.fromkeys(range(0x201C, 0x2020), '"'),
         **dict.fromkeys([0xA0, *range(0x2002, 0x200B), 0x202F, 0x205F, 0x3000], " ")}

LINES = st.lists(
    st.text(alphabet="ab -\t\u00a0\u2014'\u2019\x1f\u200b\u2000", max_size=3) | st.sampled_from(["", "a", " a", "a "]),
    max_size=12,
)
BLOCKS = LINES.filter(bool).map(lambda lines: lines[:4])


def slow_rstrip(text: str) -> str:
    while text and ord(text[-1]) in SPACE:
        text = text[:-1]
    return text


def slow_strip(text: str) -> str:
    return slow_rstrip(slow_rstrip(text)[::-1])[::-1]


def slow_fold(text: str) -> str:
    return "".join(FOLDS.get(ord(character), character) for character in slow_strip(text))


SLOW_PASSES: list[tuple[str, Callable[[str], str]]] = [
    ("exact", str), ("trailing_space", slow_rstrip), ("surrounding_space", slow_strip),
    ("folded_punctuation", slow_fold),
]


def slow_locate(lines: list[str], block: list[str], start: int, is_end_of_file: bool) -> tuple[str, list[int]] | None:
    places = range(start, len(lines) - len(block) + 1)
    if is_end_of_file:
        places = [place for place in places if place == len(lines) - len(block)]
    for kind, key in SLOW_PASSES:
        found = [
            place for place in places
            if all(key(lines[place + index]) == key(wanted) for index, wanted in enumerate(block))
        ]
        if found:
            return kind, found
    return None


@pytest.mark.parametrize("scans", [0, 1_000_000], ids=["indexed", "scanned"])
@pytest.mark.parametrize("comparisons", [0, 1_000_000], ids=["linear", "by line"])
@given(lines=LINES, block=BLOCKS, start=st.integers(0, 12), is_end_of_file=st.booleans())
def test_it_finds_what_trying_every_place_finds(  # noqa: PLR0917
    scans: int, comparisons: int, lines: list[str], block: list[str], start: int, is_end_of_file: bool
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(chunk_locator, "_SCANS_BEFORE_INDEX", scans)
        patch.setattr(chunk_locator, "_COMPARISONS_PER_LINE_MAX", comparisons)
        locator = ChunkLocator(lines)
        for _ in range(2):
            match = locator.locate(block, start_index=start, is_end_of_file=is_end_of_file)
            found = None if match is None else (match.kind, list(match.places))
            wanted = slow_locate(lines, block, start, is_end_of_file)
            assert found == (None if wanted is None else (wanted[0], wanted[1][:10]))
            assert match is None or wanted is None or (match.start, match.candidates) == (wanted[1][0], len(wanted[1]))


@given(st.lists(st.sampled_from("ab"), max_size=20), st.lists(st.sampled_from("ab"), min_size=1, max_size=5))
def test_the_linear_search_finds_overlapping_places(lines: list[str], block: list[str]) -> None:
    wanted = [place for place in range(len(lines) - len(block) + 1) if lines[place : place + len(block)] == block]
    assert occurrences(lines, block, 0) == wanted


class CountedLine(str):
    """A line that counts how often lines of its kind are compared."""

    __slots__ = ()
    comparisons = 0

    def __eq__(self, other: object) -> bool:
        CountedLine.comparisons += 1
        return str.__eq__(self, other)

    __hash__ = str.__hash__


@pytest.mark.parametrize("missing_index", [9_999, 5_000], ids=["at the end", "in the middle"])
@pytest.mark.parametrize("shape", ["all different", "all alike", "alternating"])
def test_a_near_miss_of_ten_thousand_lines_compares_each_line_a_few_times(shape: str, missing_index: int) -> None:
    texts = {
        "all different": [f"line {number}" for number in range(20_000)],
        "all alike": ["same"] * 20_000,
        "alternating": ["one", "two"] * 10_000,
    }[shape]
    block = [CountedLine(text) for text in texts[5_000:15_000]]
    block[missing_index] = CountedLine("no")
    locator = ChunkLocator([CountedLine(text) for text in texts])
    CountedLine.comparisons = 0

    assert locator.locate(block, start_index=0) is None
    assert nearest_place(locator, block, start_index=0) is not None

    assert CountedLine.comparisons < 20 * (len(texts) + len(block))


def test_a_file_of_equal_lines_holds_a_block_at_every_place() -> None:
    match = ChunkLocator(["x"] * 20_000).locate(["x"] * 10_000, start_index=0)
    assert match is not None
    assert (match.start, match.candidates) == (0, 10_001)


def test_candidates_of_very_many_blocks_are_counted_up_to_ten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chunk_locator, "_PLACES_COUNTED_MAX", 50)
    locator = ChunkLocator(["x"] * 60)
    matches = [locator.locate(["x"], start_index=start) for start in range(3)]
    assert [(match.start, match.candidates) for match in matches if match] == [(0, 60), (1, 10), (2, 10)]


def test_the_nearest_place_is_where_most_lines_agree() -> None:
    lines = ["def a():", "    x = 1", "    return x", "", "def b():", "    x = 2", "    y = 3", "    return x"]
    nearest = nearest_place(ChunkLocator(lines), ["def b():", "    x = 2", "    z = 3"], start_index=0)
    assert nearest is not None
    assert (nearest.block_index, nearest.line_number) == (2, 5)
    assert nearest.lines == ("def b():", "    x = 2", "    y = 3", "    return x")


def test_the_nearest_place_lies_rather_below_the_last_hunk_than_above() -> None:
    lines = ["a", "b", "c", "a", "b", "d"]
    nearest = nearest_place(ChunkLocator(lines), ["a", "b", "x"], start_index=2)
    assert nearest is not None
    assert (nearest.line_number, nearest.lines) == (4, ("a", "b", "d"))


def test_the_nearest_place_of_an_unknown_line_shares_its_words() -> None:
    nearest = nearest_place(ChunkLocator(["alpha", "beta = gamma(1)", "omega"]), ["beta = gamma(2)"], start_index=0)
    assert nearest is not None
    assert nearest.line_number == 2
