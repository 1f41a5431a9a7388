"""A report stands by itself: well-formed, without a script or a request, and true also of a hostile log."""

import re
from html.parser import HTMLParser

import anyio
import pytest
from tampering import Tamperer
from test_files_at import live

from adapters.log.reader import LogReader
from codespace_es.event_catalogue import CATALOGUE
from replay import report
from replay.markup import diff, shown
from replay.page import page
from replay.report import gather

EMPTY = {"meta", "br"}


class Page(HTMLParser):
    """A strict reader: every element is closed in its turn."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self._open: list[str] = []
        self.feed(text)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag not in EMPTY:
            self._open.append(tag)

    def handle_endtag(self, tag):
        assert self._open.pop() == tag

    def handle_data(self, data):
        self.text += data


def page_of(path, begin: int = 0, end: int = 10**6, **options) -> str:
    with LogReader(path, CATALOGUE) as source:
        told = gather(source, begin, min(end, source.head()[0]), **options)
    return "".join(page(told, made_at="now", software="tests"))


def test_a_page_tells_every_thing_of_a_life_and_asks_nothing_of_anybody(written_life):
    text = page_of(written_life.path)
    read = Page(text)
    ids = [attributes["id"] for _, attributes in read.elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    assert set(written_life.operations.values()) <= set(ids)
    assert {f"event-{position}" for position in range(1, 31)} <= set(ids)
    links = {attributes["href"] for tag, attributes in read.elements if tag == "a"}
    assert links <= {f"#{each}" for each in ids}
    assert not {tag for tag, _ in read.elements} & {"script", "img", "link", "iframe", "object", "form", "base"}
    assert not re.search(r"https?:|url\(|@import|//[a-z]", text)
    assert all(not name.startswith("on") for _, attributes in read.elements for name in attributes)
    assert "The log is whole and unchanged" in read.text
    assert "pruned" in read.text
    for status in ("applied", "rejected", "checked", "failed_rolled_back", "undone"):
        assert status in read.text


def test_a_session_tells_only_its_own(written_life):
    with LogReader(written_life.path, CATALOGUE) as source:
        second = [each.stream_id for each in source.read_log() if each.topic == "instance.started.v1"][1]
        own = [each for each in source.read_log() if second in (each.envelope.instance_id, each.stream_id)]
        told = gather(source, 0, 30, session=second)
        assert [entry.position for entry in told.entries] == [each.position for each in own]
        assert gather(source, 0, 30, session="nobody").entries == []
        assert gather(source, 0, 30, session="agent").entry_count == 30
    assert [each.report.operation_id for each in told.operations] == [written_life.operations["deleted"]]
    assert [file.path for file in told.files] == ["b/c.txt"]


def test_a_range_tells_things_as_they_were_at_its_end(written_life):
    with LogReader(written_life.path, CATALOGUE) as source:
        told = gather(source, 6, 9)
    (operation,) = told.operations
    assert (operation.report.status, operation.report.reverted_by) == ("applied", None)
    assert (told.entry_count, [file.path for file in told.files]) == (3, ["a.txt"])


def test_what_is_too_much_is_counted(written_life, monkeypatch):
    monkeypatch.setattr(report, "ENTRIES_MAX", 5)
    monkeypatch.setattr(report, "THINGS_MAX", 2)
    text = Page(page_of(written_life.path)).text
    assert "the first 5 of 30" in text
    assert "the first 2 of 8" in text


def test_a_damaged_log_is_said_to_be_damaged(life):
    with Tamperer(life.path) as tamperer:
        tamperer.change_state(15, lambda state: state.replace(b'"tool":"read"', b'"tool":"find"'))
    text = Page(page_of(life.path)).text
    assert "The log is damaged" in text
    assert "Law chain, position 15" in text


HOSTILE = [
    '<script>alert(1)</script>', '"><img src=x onerror=alert(1)>', "\x1b[2J\u202egnp", "&lt;&amp;", "a\u2028b",
    "a\u3164\ufe01b",
]


@pytest.mark.parametrize("text", HOSTILE)
def test_no_name_can_become_markup_or_hide(life, text):
    with Tamperer(life.path) as tamperer:
        quoted = text.encode("unicode_escape").replace(b"\\x", b"\\u00").replace(b'"', b'\\"')
        for position in range(1, 31):
            tamperer.change_state(position, lambda state: state.replace(b"a.txt", quoted).replace(b"agent/1", quoted))
        tamperer.hide()
    made = page_of(life.path)
    read = Page(made)
    assert shown(text) in made
    assert text not in made
    assert not {tag for tag, _ in read.elements} & {"script", "img"}
    assert "\x1b" not in made
    assert "\u202e" not in made


def test_a_real_server_s_diffs_are_shown_line_by_line(tmp_path):
    (root := tmp_path / "root").mkdir()
    anyio.run(live, tmp_path, root, [("add", 0, 0), ("update", 0, 0), ("undo", 1, 0)])
    read = Page(page_of(tmp_path / "data" / "codespace.db"))
    assert "-text 0" in read.text
    assert "+text 1" in read.text
    assert "undo of a.txt" in read.text


def test_a_diff_keeps_its_lines():
    assert diff("--- a\n+++ b\n@@ -1 +1 @@\n-<x>\n+\ty\n \n") == (
        '<pre><span class="head">--- a</span><span class="head">+++ b</span><span class="at">@@ -1 +1 @@</span>'
        '<span class="cut">-&lt;x&gt;</span><span class="add">+\ty</span><span class=""> </span></pre>'
    )
