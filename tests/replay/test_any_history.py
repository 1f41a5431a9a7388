"""Whatever has happened, an audit tells it as it was: at the end as it is, at each position as it was then."""

from collections import Counter

import anyio
from generated_history import MOVES, History, Move
from hypothesis import given, settings

from adapters.log.places import LogPlace
from adapters.log.reader import LogReader
from codespace_es.event_catalogue import CATALOGUE
from replay.state_at import aggregates_at, state_at
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
