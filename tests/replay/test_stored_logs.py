"""Logs of every version that was ever released are read, kept whole and folded to the same states, for ever."""

from pathlib import Path

import pytest
from stored_log import digest_of_folds, export, load

from adapters.log.reader import LogReader
from codespace_es.event_catalogue import CATALOGUE
from replay.verify import verify

LOGS = sorted((Path(__file__).parent / "logs").glob("*/*.jsonl"))


@pytest.mark.parametrize("stored", LOGS, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_a_log_of_an_earlier_version_keeps_every_law_and_folds_as_it_did(stored, tmp_path):
    path = tmp_path / "log.db"
    text = stored.read_text(encoding="utf-8")
    load(text, path)
    with LogReader(path, CATALOGUE) as reader:
        assert verify(reader).findings == ()
    expected = stored.with_suffix(".digest").read_text(encoding="utf-8").strip()
    assert digest_of_folds(path) == expected, "an old log means something else now: add a .v2 event and an upcaster"
    assert export(path) == text


def test_the_stored_logs_hold_every_topic_that_is_written():
    texts = [stored.read_text(encoding="utf-8") for stored in LOGS]
    topics = {topic for topic in CATALOGUE for text in texts if f'"topic": "{topic}"' in text}
    assert set(CATALOGUE) - topics == set(), (
        "store a log with the new event: python tests/replay/stored_log.py tests/replay/logs/vVERSION"
    )
