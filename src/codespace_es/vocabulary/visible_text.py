"""Text that can be seen through, for people who decide by what they read: a terminal, a page, a client's form.

Labels, file names, contents and output are chosen by others. A sign that a terminal obeys, that turns the reading
direction, or that leaves no ink would let two texts look alike, or hide one in another.
"""

import re
from collections.abc import Callable

from codespace_es.vocabulary.emoji import PICTURES

_INKLESS = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u2800\u3164"
    "\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufff8\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
"""What is drawn as nothing, though `str.isprintable` lets some of it through: the blank of Braille, and Unicode 16's
Default_Ignorable_Code_Point, to which variation selectors and fillers belong; one that makes a picture stays."""


def spelt_out(text: str, *, kept: str = "") -> str:
    r"""Return `text` with `\x1b`, `\u202e` or `\U000e0100` for every sign that has no look of its own; `kept` stays."""
    return _replaced(text, lambda sign: sign.encode("unicode_escape").decode("ascii"), kept)


def json_spelt_out(line: str) -> str:
    r"""Return a line of JSON that says the same, with `\u202e` for every sign that has no look of its own."""
    return _replaced(line, _as_json, "\n\t")


def _replaced(text: str, written: Callable[[str], str], kept: str) -> str:
    if text.isprintable() and _INKLESS.search(text) is None:
        return text
    parts, end = [], 0
    for picture in PICTURES.finditer(text):
        parts += [_plain(text[end:picture.start()], written, kept), picture[0]]
        end = picture.end()
    return "".join([*parts, _plain(text[end:], written, kept)])


def _plain(text: str, written: Callable[[str], str], kept: str) -> str:
    return "".join(each if each in kept or _has_ink(each) else written(each) for each in text)


def _has_ink(sign: str) -> bool:
    return sign.isprintable() and _INKLESS.match(sign) is None


def _as_json(sign: str) -> str:
    units = sign.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[at:at + 4]}" for at in range(0, len(units), 4))
