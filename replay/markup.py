"""Writing HTML from text that isn't to be trusted: escaped, and nothing unseen gets through."""

from collections.abc import Iterable, Iterator
from datetime import datetime
from html import escape

from codespace_es.vocabulary.visible_text import spelt_out


def shown(text: object) -> str:
    """Return `text` for one line of a page: spelt out and escaped."""
    return escape(spelt_out(str(text)), quote=True)


def shown_lines(text: str) -> list[str]:
    """Return the lines of `text`, each as `shown`, with their tabs."""
    return ["\t".join(shown(part) for part in line.split("\t")) for line in text.split("\n")]


def chip(text: object, look: str = "") -> str:
    """Return a small label; `look` is good, bad, odd, link or nothing."""
    return f'<span class="chip {look}">{shown(text)}</span>'


def pairs(rows: Iterable[tuple[str, object]]) -> str:
    """Return names and values."""
    return "<dl>" + "".join(f"<dt>{shown(name)}</dt><dd>{shown(value)}</dd>" for name, value in rows) + "</dl>"


def diff(text: str) -> str:
    """Return a unified diff with its lines coloured."""
    looks = {"+": "add", "-": "cut", "@": "at"}
    lines: list[str] = []
    for line in shown_lines(text.rstrip("\n")):
        is_head = line.startswith(("--- ", "+++ ", "rename "))
        look = "head" if is_head else looks.get(line[:1], "")
        lines.append(f'<span class="{look}">{line or " "}</span>')
    return f"<pre>{''.join(lines)}</pre>"


def moment(at: datetime | None) -> str:
    """Return a time, UTC, to the second."""
    return "" if at is None else f"{at:%Y-%m-%d %H:%M:%S} UTC"


def heading(name: str, what: str, count: int, told: int) -> Iterator[str]:
    """Yield a heading that says how many things there are, and how many of them are told."""
    some = f", the first {told:,} of {count:,}" if told < count else f", {count:,}"
    yield f"<h2>{shown(name)} <small>{shown(what)}{some}</small></h2>"
