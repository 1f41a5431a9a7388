"""An export is the whole log: what is read back from its lines keeps the chain, from any position on."""

import base64
import json
import re
from datetime import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tampering import Tamperer

from adapters.log import bodies
from adapters.log.chain import GENESIS, link
from adapters.log.reader import LogReader
from adapters.log.sqlite import schema
from adapters.log.sqlite.connecting import driver
from codespace_es.event_catalogue import CATALOGUE
from codespace_es.vocabulary.file_change import digest_of
from replay.export import cloud_events, json_lines
from replay.verify import verify

EVENT = re.compile(rb'(.*),"envelope":(\{.*\}),"event":(\{.*\})\}\n')


def take_in(lines, path) -> None:
    """Make a log of exported lines, as somebody who has nothing else."""
    connection = driver.connect(path, isolation_level=None)
    schema.create_if_empty(connection)
    connection.execute("BEGIN")
    waiting = []
    for line in lines:
        told = json.loads(line)
        if "digest" in told:
            if told["content"] is not None:
                waiting.append((told, base64.b64decode(told["content"])))
            continue
        stored_at_ms = round(datetime.fromisoformat(told["envelope"]["recorded_at"]).timestamp() * 1000)
        for named, content in waiting:  # each stands before the event that names it, and was stored with it
            key = named["stream_id"], bodies.key_of(named["digest"])
            row = (*key, named["kind"], len(content), stored_at_ms, content)
            connection.execute("INSERT OR IGNORE INTO bodies VALUES (?, ?, ?, ?, ?, ?)", row)
        waiting.clear()
        match = EVENT.fullmatch(line)
        state = match[2] + b"\n" + match[3]
        row = (told["position"], told["stream_id"], told["version"], told["topic"], state, bytes.fromhex(told["hash"]))
        connection.execute("INSERT INTO events VALUES (?, ?, ?, ?, ?, ?)", row)
    connection.execute("COMMIT")
    connection.close()


def test_what_was_exported_and_read_back_is_the_same_log(written_life, tmp_path):
    with LogReader(written_life.path, CATALOGUE) as source:
        take_in(json_lines(source, has_bodies=True), tmp_path / "again.db")
        with LogReader(tmp_path / "again.db", CATALOGUE) as again:
            assert list(again.raw_rows()) == list(source.raw_rows())
            contents = [{row[:2]: row[2] for row in each.stored_contents()} for each in (source, again)]
            assert contents[0] == contents[1]
            # What is open isn't exported: it follows from the events.
            assert {finding.law for finding in verify(again).findings} == {"open_index"}


@given(cut=st.integers(0, 30))
def test_an_export_goes_on_at_any_position(written_life, cut):
    with LogReader(written_life.path, CATALOGUE) as source:
        for lines in (json_lines, cloud_events):
            whole = list(lines(source, has_bodies=True))
            ends = [number for number, line in enumerate(whole) if _position(line) == cut and not _is_content(line)]
            first = whole[: ends[0] + 1] if ends else []
            assert first + list(lines(source, after=cut, has_bodies=True)) == whole


def _position(line) -> int:
    told = json.loads(line)
    return int(told.get("position") or told["sequence"])


def _is_content(line) -> bool:
    told = json.loads(line)
    return "digest" in told or "/" in told.get("id", "")


def test_lines_follow_the_chain_by_themselves(written_life):
    previous = GENESIS
    with LogReader(written_life.path, CATALOGUE) as source:
        for line in json_lines(source):
            told, match = json.loads(line), EVENT.fullmatch(line)
            state = match[2] + b"\n" + match[3]
            previous = link(previous, told["position"], told["stream_id"].encode(), told["version"],
                            told["topic"].encode(), state)
            assert told["hash"] == previous.hex()


def test_cloud_events_have_what_the_standard_asks_for(written_life):
    with LogReader(written_life.path, CATALOGUE) as source:
        events = [json.loads(line) for line in cloud_events(source, has_bodies=True)]
        recorded = list(source.read_log())
    assert len({(event["source"], event["id"]) for event in events}) == len(events)
    for event in events:
        assert event["specversion"] == "1.0"
        assert all(isinstance(event[name], str) and event[name] for name in ("id", "source", "type", "subject", "time"))
        assert all(re.fullmatch("[a-z0-9]{1,20}", name) for name in event if name != "data_base64")
        assert ("data" in event) != ("data_base64" in event)
    told = [event for event in events if "data" in event]
    assert [event["type"] for event in told] == ["codespace-es." + each.topic for each in recorded]
    assert [event["data"] for event in told] == [
        each.event.model_dump(mode="json", exclude_none=True) for each in recorded
    ]
    assert [event["sequence"] for event in events] == sorted(event["sequence"] for event in events)
    contents = [event for event in events if "data_base64" in event]
    assert all(digest_of(base64.b64decode(each["data_base64"])) == each["id"].partition("/")[2] for each in contents)
    assert len(contents) > 10


@pytest.mark.parametrize("state", [b"", b"{}", b"{}\n[]", b"{}\n{}\n{}", b"\xff\n{}", b"[" * 9999 + b"\n{}", "text", 7])
def test_a_damaged_event_is_still_a_line_of_json(life, state):
    with Tamperer(life.path) as tamperer:
        tamperer.execute("UPDATE events SET state = ? WHERE position = 15", state)
    with LogReader(life.path, CATALOGUE) as source:
        for lines in (json_lines, cloud_events):
            told = [json.loads(line) for line in lines(source, has_bodies=True)]
            assert {_position(json.dumps(line)) for line in told} == set(range(1, 31))
