"""The pages that name tests name tests that are there: a promise without one is a hope."""

import re

import pytest
from source_tree import REPOSITORY

NODE = re.compile(r"`(tests/[\w/.]+\.py)(?:::(\w+))?`")
PROMISE = re.compile(r"^## (\d+)\. (.+)$", re.MULTILINE)
PAGE = (REPOSITORY / "docs/promises.md").read_text(encoding="utf-8")
PARTS = PROMISE.split(PAGE)[1:]
PROMISES = list(zip(PARTS[::3], PARTS[1::3], PARTS[2::3], strict=True))
"""Number, words and the text of each."""


@pytest.mark.parametrize(("number", "words", "text"), PROMISES, ids=[number for number, _, _ in PROMISES])
def test_a_promise_has_limits_and_tests(number: str, words: str, text: str) -> None:
    assert "Limits: " in text, f"say the limits of {words!r}"
    assert NODE.search(text), f"name a test that fails without {words!r}"


def test_promises_are_counted_from_one() -> None:
    assert [int(number) for number, _, _ in PROMISES] == list(range(1, len(PROMISES) + 1))


@pytest.mark.parametrize("page", ["promises.md", "testing.md"])
def test_every_test_that_a_page_names_is_there(page: str) -> None:
    text = (REPOSITORY / "docs" / page).read_text(encoding="utf-8")
    missing = []
    for name, test in NODE.findall(text):
        path = REPOSITORY / name
        known = path.read_text(encoding="utf-8") if path.is_file() else ""
        if not re.search(rf"(?:def |class |^){test}\b" if test else r"\A\S", known, re.MULTILINE):
            missing.append(f"{name}::{test}")
    assert missing == []
    assert len(NODE.findall(text)) > 20
