"""Whatever has happened, an audit tells it as it was: at the end as it is, at each position as it was then."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import anyio
import pytest
from generated_history import MOVES, History, Move
from hypothesis import given, settings
from lived_log import live

from adapters.log.places import LogPlace
from adapters.log.reader import LogReader
from codespace_es.event_catalogue import CATALOGUE
from codespace_es.vocabulary.event import RecordedEvent
from codespace_es.vocabulary.identifiers import StreamId
from replay.memory import DECIDERS
from replay.state_at import OpenThing, aggregates_at, facts_of, state_at
from replay.stepping import Stepper
from replay.verify import verify
from support.effort import examples
from support.postgres import PostgresServer


@settings(max_examples=examples(15))
@given(moves=MOVES)
def test_in_a_file(tmp_path_factory, moves):
    look_back(tmp_path_factory.mktemp("history") / "log.db", moves)


@settings(max_examples=examples(3))
@given(moves=MOVES)
def test_in_postgres(postgres: PostgresServer, moves):
    look_back(postgres.new_log(), moves)


def look_back(place: LogPlace, moves: list[Move]) -> None:
    history = History(place)
    anyio.run(history.play, moves)
    with LogReader(place, CATALOGUE) as reader:
        assert verify(reader).findings == ()
        head, _ = reader.head()
        assert state_at(reader, 10**9).position == head == history.moments[-1].position
        stepper = Stepper(reader)
        for moment in reversed(history.moments):
            aggregates = list(aggregates_at(reader, moment.position))
            assert {each.stream_id: (each.state, each.facts, each.version) for each in aggregates} == moment.states
            whole = state_at(reader, moment.position)
            assert [(each.stream_id, each.kind, each.instance_id, each.position) for each in whole.open] == [
                (each.stream_id, each.kind, each.instance_id, each.position) for each in moment.open]
            assert list(stepper.frame(moment.position).open) == [each.stream_id for each in moment.open]
            counted = Counter((each.kind, each.state) for each in aggregates)
            assert counted == Counter({
                (kind, state): count for kind, states in whole.aggregates.items() for state, count in states.items()})


@pytest.mark.soak
def test_a_session_of_holds_commands_and_steering_in_postgres(postgres: PostgresServer, tmp_path: Path):
    """As real handlers write it: a patch and a command that were held, terminals, works and instructions."""
    place = postgres.new_log()
    (tmp_path / "project").mkdir()
    anyio.run(live, tmp_path, tmp_path / "project", place)
    with LogReader(place, CATALOGUE) as reader:
        assert verify(reader).findings == ()
        events = list(reader.read_log())
        assert {"appr", "proc", "steer", "op", "inst"} <= {each.stream_id.partition("-")[0] for each in events}
        for position in range(1, len(events) + 1, 3):
            told = {each.stream_id: (each.state, each.facts) for each in aggregates_at(reader, position)}
            streams = dict.fromkeys(each.stream_id for each in events[:position])
            assert told == {stream: _folded(stream, events[:position]) for stream in streams}
        assert state_at(reader, len(events)).open == tuple(
            OpenThing(stream_id=item.stream_id, kind=item.kind, instance_id=item.instance_id, position=item.position)
            for item in reader.open_items())


def _folded(stream_id: StreamId, events: Sequence[RecordedEvent]) -> tuple[str, dict[str, Any]]:
    own = [each for each in events if each.stream_id == stream_id]
    state = DECIDERS[stream_id.partition("-")[0]].fold_recorded(own)
    return type(state).__name__, facts_of(state)
