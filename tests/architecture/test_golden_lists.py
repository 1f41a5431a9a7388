"""What users and stored logs rely on, as lists: an addition is a visible difference, a removal fails.

After an addition: `python tests/architecture/make_golden_lists.py`, read the difference, and write a changelog entry.
"""

import json

import pytest
from make_golden_lists import error_codes, event_schemas, limit_values, topics
from source_tree import GOLDEN, golden_lines

from codespace_es.vocabulary.errors import ERROR_SPECS, ErrorCode

ACCEPT = "run python tests/architecture/make_golden_lists.py and write a changelog entry"


@pytest.mark.parametrize(("name", "present"), [("topics.txt", topics()), ("error_codes.txt", error_codes())])
def test_nothing_that_was_released_is_ever_removed(name, present):
    removed = sorted(set(golden_lines(name)) - set(present))
    assert not removed, f"{removed}: stored logs and callers rely on it; bring it back and mark it as retired"


@pytest.mark.parametrize(("name", "present"), [("topics.txt", topics()), ("error_codes.txt", error_codes())])
def test_everything_new_is_on_its_list(name, present):
    added = sorted(set(present) - set(golden_lines(name)))
    assert not added, f"{added} is new: {ACCEPT}"


def test_every_limit_is_what_it_was():
    golden = (GOLDEN / "limits.txt").read_text(encoding="utf-8")
    assert golden == limit_values(), f"a limit has changed: {ACCEPT}"


def test_a_stored_event_keeps_its_fields():
    golden = json.loads((GOLDEN / "event_schemas.json").read_text(encoding="utf-8"))
    present = event_schemas()
    for topic, fields in golden.items():
        changed = [name for name, shape in fields.items() if present[topic].get(name) != shape]
        assert not changed, f"{topic}: {changed} changed; a stored event is never edited: add .v2 and an upcaster"


def test_a_field_that_is_added_to_a_stored_event_may_be_absent():
    golden = json.loads((GOLDEN / "event_schemas.json").read_text(encoding="utf-8"))
    for topic, fields in event_schemas().items():
        added = {name: shape for name, shape in fields.items() if name not in golden.get(topic, {})}
        required = [name for name, shape in added.items() if shape.endswith("!") and topic in golden]
        assert not required, f"{topic}: old logs lack {required}: give it a default, or add .v2"
        assert not added, f"{topic}: {sorted(added)} is new: {ACCEPT}"


def test_the_specifications_cover_the_codes_exactly():
    assert set(ERROR_SPECS) == set(ErrorCode), "one entry of ERROR_SPECS a code"
