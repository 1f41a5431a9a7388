"""The log as of a moment: at each position what was then, and nothing of what came later."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tampering import Tamperer

from adapters.log.reader import LogReader
from codespace_es.aggregates.operation import OperationFinished
from codespace_es.event_catalogue import CATALOGUE
from codespace_es.ports.log import StoreUnavailableError
from replay.memory import DECIDERS
from replay.moments import NoSuchMomentError, position_of
from replay.state_at import aggregate_at, aggregates_at, facts_of, state_at
from replay.stepping import Stepper
from support.effort import examples


@pytest.fixture
def reader(place):
    with LogReader(place, CATALOGUE) as source:
        yield source


@pytest.mark.parametrize("position", range(31))
def test_at_each_position_every_aggregate_is_the_fold_of_the_prefix(reader, position):
    prefix = [each for each in reader.read_log() if each.position <= position]
    streams = dict.fromkeys(each.stream_id for each in prefix)
    told = list(aggregates_at(reader, position))
    assert [each.stream_id for each in told] == list(streams)
    for each in told:
        own = [recorded for recorded in prefix if recorded.stream_id == each.stream_id]
        state = DECIDERS[each.stream_id.partition("-")[0]].fold_recorded(own)
        assert (each.state, each.facts) == (type(state).__name__, facts_of(state))
        assert (each.version, each.position) == (own[-1].version, own[-1].position)
    whole = state_at(reader, position)
    assert sum(count for states in whole.aggregates.values() for count in states.values()) == len(streams)
    for kind, states in whole.aggregates.items():
        assert states == {name: sum(each.kind == kind and each.state == name for each in told) for name in states}
    assert (whole.position, whole.event is None) == (position, position == 0)
    assert tuple(each.stream_id for each in whole.open) == Stepper(reader).frame(position).open


def test_at_the_end_the_state_is_the_live_one(reader):
    whole = state_at(reader, 10**9)
    assert whole.position == whole.head_position == 30
    assert [(each.stream_id, each.kind, each.position) for each in whole.open] == [
        (item.stream_id, item.kind, item.position) for item in reader.open_items()
    ]
    assert set(whole.workspaces.values()) == {"/srv/demo"}
    assert whole.operations == {"applied": 4, "checked": 1, "failed_rolled_back": 1, "rejected": 1}


def test_an_operation_is_told_as_it_was_known_then(written_life, reader):
    updated = written_life.operations["updated"]
    assert aggregate_at(reader, updated, 7) is None
    then = {position: aggregate_at(reader, updated, position) for position in (8, 9, 30)}
    assert [each.state for each in then.values()] == ["Minted", "Finished", "Reverted"]
    assert [each.report.status for each in then.values()] == ["unknown", "applied", "applied"]
    assert [each.report.reverted_by is None for each in then.values()] == [True, True, False]


@settings(max_examples=examples(20))
@given(visits=st.lists(st.integers(-3, 40), max_size=12))
def test_stepping_in_any_order_shows_each_moment_as_itself(place, visits):
    with LogReader(place, CATALOGUE) as source:
        stepper = Stepper(source)
        for position in visits:
            assert stepper.frame(position) == Stepper(source).frame(max(0, min(30, position)))


def test_a_moment_is_a_position_a_time_an_event_or_a_key(written_life, reader):
    updated = written_life.operations["updated"]
    times = {each.position: each.envelope.recorded_at for each in reader.read_log()}
    assert position_of(reader, "0") == 0
    assert position_of(reader, "head") == 30
    assert position_of(reader, f"{updated}@1") == 8
    assert position_of(reader, updated) == position_of(reader, "key-2") == 18
    assert position_of(reader, "2020-01-01") == 0
    assert position_of(reader, "2999-01-01T00:00:00+02:00") == 30
    for time in times.values():
        position = position_of(reader, time.isoformat())
        assert times[position] <= time
        assert position == 30 or times[position + 1] > time


@pytest.mark.parametrize(
    "moment", ["31", "9" * 40, "-1", "", "yesterday", "op-unknown", "store@9", "store@" + "9" * 30]
)
def test_what_is_no_moment_is_refused(reader, moment):
    with pytest.raises(NoSuchMomentError):
        position_of(reader, moment)


def test_a_story_that_cannot_be_is_refused_not_told(life):
    with Tamperer(life.path) as tamperer:
        tamperer.append(life.operations["deleted"], 3, OperationFinished(status="applied"), like=30)
    with LogReader(life.path, CATALOGUE) as source:
        assert state_at(source, 30).position == 30
        with pytest.raises(StoreUnavailableError, match="can't be"):
            state_at(source, 31)
