"""What may be pruned: never the contents of what is open, nor those that tell of earlier removals."""

from adapters.cli.pruning import Rule, choose
from adapters.log.reader import LogReader
from codespace_es.event_catalogue import CATALOGUE


def test_nothing_of_what_is_open_may_go(written_life):
    with LogReader(written_life.path, CATALOGUE) as source:
        chosen = list(choose(source, Rule(frozenset({"image", "request", "result"}), None, 0)))
        opened = {item.stream_id for item in source.open_items()}
        stored = {body.stream_id for body in source.stored_bodies()}
    assert written_life.operations["open"] in opened & stored
    assert not {body.stream_id for body in chosen} & (opened | {"store"})
    assert {body.stream_id for body in chosen} == stored - opened - {"store"}
