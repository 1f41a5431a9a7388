"""The timeline: one sentence an event, filtered, in pages, from either end."""

import json
from datetime import datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.log.reader import LogReader
from codespace_es.event_catalogue import CATALOGUE
from codespace_es.projections.sentences import SENTENCES
from codespace_es.vocabulary.identifiers import workspace_key
from replay.timeline import Page, Timeline, Wanted


@pytest.fixture
def timeline(written_life):
    with LogReader(written_life.path, CATALOGUE) as reader:
        yield Timeline(reader)


def positions(page: Page) -> list[int]:
    return [entry.position for entry in page.entries]


def test_every_event_of_the_catalogue_has_its_sentence():
    assert set(SENTENCES) == set(CATALOGUE.values()), "write the new event's sentence in projections/timeline.py"


def test_every_sentence_begins_with_a_capital_and_ends_with_one_stop(timeline):
    for entry in timeline.read(limit=1000).entries:
        assert entry.summary[0].isupper() or entry.summary.split()[0] in ("apply_patch", "codespace-es/0.1.0"), entry
        assert entry.summary.endswith(".")
        assert not entry.summary.endswith("..")


def test_an_entry_tells_who_did_what_when_and_what_it_links_to(timeline, written_life):
    undo = timeline.read(Wanted(operation=written_life.operations["undo"]), limit=1).entries[0]
    updated = written_life.operations["updated"]
    assert undo.model_dump(mode="json", exclude={"recorded_at", "instance_id", "request_id"}) == {
        "position": 16,
        "stream_id": written_life.operations["undo"],
        "version": 1,
        "topic": "operation.minted.v1",
        "channel": "mcp",
        "client": "agent/1",
        "summary": f"An undo of {updated} is about to change a.txt in workspace demo.",
        "refs": [workspace_key("machine-1", "/srv/demo"), updated],
    }
    assert undo.instance_id.startswith("inst-")
    assert undo.request_id.startswith("req-")


def test_all_events_are_told_in_order_when_nothing_is_asked(timeline):
    page = timeline.read(limit=1000)
    assert (positions(page), page.next_after) == (list(range(1, 31)), None)


@given(limit=st.integers(1, 40), wanted=st.sampled_from([None, Wanted(topic="operation"), Wanted(text="a.txt")]))
def test_pages_put_together_are_the_whole(written_life, limit, wanted):
    with LogReader(written_life.path, CATALOGUE) as reader:
        timeline = Timeline(reader)
        whole = timeline.read(wanted, limit=1000)
        entries, after = [], 0
        while after is not None:
            page = timeline.read(wanted, after=after, limit=limit)
            assert len(page.entries) <= limit
            entries += page.entries
            after = page.next_after
        assert tuple(entries) == whole.entries


@given(limit=st.integers(0, 40), wanted=st.sampled_from([None, Wanted(topic="claim"), Wanted(text="refused")]))
def test_the_newest_are_the_end_of_the_whole(written_life, limit, wanted):
    with LogReader(written_life.path, CATALOGUE) as reader:
        whole = Timeline(reader).read(wanted, limit=1000).entries
        newest = Timeline(reader).read_newest(wanted, limit=limit)
        assert newest.entries == (whole[-limit:] if limit else ())
        assert newest.next_after == 30


def test_an_operation_is_found_with_all_that_links_to_it(timeline, written_life):
    wanted = Wanted(operation=written_life.operations["updated"])
    assert positions(timeline.read(wanted)) == [7, 8, 9, 16, 17, 18]


def test_a_workspace_is_found_by_name_and_by_key_with_its_claims_and_ends(timeline):
    by_name = timeline.read(Wanted(workspace="demo"))
    by_key = timeline.read(Wanted(workspace=workspace_key("machine-1", "/srv/demo")))
    everything_but_servers_and_store = [*range(3, 21), 22, 24, 25, 29, 30]
    assert positions(by_name) == everything_but_servers_and_store
    assert positions(by_key) == [each for each in everything_but_servers_and_store if each != 15]
    assert positions(timeline.read(Wanted(workspace="other"))) == []


def test_a_workspace_is_known_when_reading_begins_after_its_operation(timeline):
    assert positions(timeline.read(Wanted(workspace="demo"), after=8, limit=1)) == [9]


def test_a_session_is_found_with_what_it_did_and_what_became_of_it(timeline):
    first = timeline.read(limit=2).entries[1].instance_id
    assert positions(timeline.read(Wanted(instance=first))) == [*range(1, 21), 23]


@pytest.mark.parametrize(("wanted", "expected"), [
    (Wanted(topic="operation.reverted.v1"), [18]),
    (Wanted(topic="operation.reverted"), [18]),
    (Wanted(topic="instance"), [2, 15, 21, 23, 27, 28]),
    (Wanted(topic="inst"), []),
    (Wanted(client="agent", topic="store"), [1, 26]),
    (Wanted(client="other"), []),
    (Wanted(text="PATH_escape"), [15]),
    (Wanted(text="b/c.txt"), [5, 24]),
    (Wanted(text="nowhere"), []),
])
def test_events_are_found_by_kind_client_and_text(timeline, wanted, expected):
    assert positions(timeline.read(wanted)) == expected


def test_a_time_range_has_its_beginning_and_not_its_end(timeline):
    whole = timeline.read(limit=1000).entries
    since, until = whole[4].recorded_at, whole[7].recorded_at
    wanted = Wanted(since=since, until=until)
    assert list(timeline.read(wanted, limit=1000).entries) == [
        entry for entry in whole if since <= entry.recorded_at < until
    ]
    assert timeline.read(Wanted(since=datetime.max.replace(tzinfo=since.tzinfo))).entries == ()
    assert timeline.read(Wanted(until=since - timedelta(days=1))).entries == ()


def test_a_page_is_json(timeline):
    page = json.loads(timeline.read(limit=2).model_dump_json())
    assert [entry["position"] for entry in page["entries"]] == [1, 2]
