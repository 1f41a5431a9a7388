"""Text that can be seen through: nothing that a terminal obeys, that turns the reading, or that is drawn as nothing."""

import json
from unicodedata import east_asian_width

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich._unicode_data import load

from codespace_es.vocabulary.emoji import PICTURES
from codespace_es.vocabulary.visible_text import json_spelt_out, spelt_out

UNSEEN = [
    "\x00", "\x1b", "\x7f", "\x9b", "\xa0", "\xad", "\u034f", "\u115f", "\u180e", "\u200b", "\u200d", "\u202e",
    "\u2066", "\u2028", "\u2800", "\u3164", "\ufe00", "\ufe0f", "\ufeff", "\uffa0", "\ud800", "\U000e0041",
    "\U000e0100", "\U000e01ef",
]


@pytest.mark.parametrize("sign", UNSEEN, ids=ascii)
def test_what_has_no_look_of_its_own_is_spelt_out(sign: str) -> None:
    shown = spelt_out(f"a{sign}b")
    assert shown.isascii()
    assert shown.encode().decode("unicode_escape") == f"a{sign}b"


@given(st.text(st.one_of(st.characters(), st.sampled_from([*UNSEEN, *"❤1⭐\u20e3"]))))
def test_nothing_unseen_gets_through_and_what_is_kept_stays(text: str) -> None:
    assert spelt_out(text).isprintable()
    assert not set(PICTURES.sub("", spelt_out(text))) & set(UNSEEN)
    assert spelt_out(text, kept="\n\t").replace("\n", "").replace("\t", "").isprintable()
    assert spelt_out(spelt_out(text)) == spelt_out(text)


def test_text_that_can_be_read_stays_as_it_is() -> None:
    told = "grüße, Übung: 日本語, עברית, हिन्दी, ✓ and 🙂 \\x1b, ❤\ufe0f ✈\ufe0f 🕵\ufe0f 1\ufe0f\u20e3 #\ufe0f\u20e3"
    assert spelt_out(told) == told
    assert json_spelt_out(told) == told


@pytest.mark.parametrize(("text", "shown"), [
    ("\ufe0f❤", "\\ufe0f❤"), ("❤\ufe0f\ufe0f", "❤\ufe0f\\ufe0f"), ("❤\ufe0e", "❤\\ufe0e"), ("a\ufe0f", "a\\ufe0f"),
    ("❤\u0301\ufe0f", "❤\u0301\\ufe0f"), ("⭐\ufe0f", "⭐\\ufe0f"), ("🙂\ufe0f", "🙂\\ufe0f"), ("☇\ufe0f", "☇\\ufe0f"),
    ("1\ufe0f", "1\\ufe0f"), ("12\ufe0f3\u20e3", "12\\ufe0f3\u20e3"), ("❤\ufe0f\u200d🔥", "❤\ufe0f\\u200d🔥"),
    ("👨\u200d👩", "👨\\u200d👩"),
])
def test_a_selector_that_makes_no_picture_is_spelt_out_and_so_is_every_joiner(text: str, shown: str) -> None:
    assert spelt_out(text) == shown


def test_the_signs_that_a_selector_makes_pictures_of_are_those_that_rich_finds_wider_with_it() -> None:
    wider = load("17.0.0").narrow_to_wide - set("#*0123456789")
    mine = {chr(code) for code in range(0x110000) if PICTURES.fullmatch(f"{chr(code)}\ufe0f")}
    assert wider <= mine
    assert {sign for sign in mine - wider if east_asian_width(sign) != "W"} == set()


@given(st.dictionaries(st.text(), st.text(st.one_of(st.characters(), st.sampled_from(UNSEEN)))))
def test_json_says_the_same(value: dict[str, str]) -> None:
    shown = json_spelt_out(json.dumps(value, ensure_ascii=False))
    assert json.loads(shown) == value
    assert shown.isprintable()
