"""`show ID`: one thing's whole story, whatever kind of thing the id names."""

import pytest
from tampering import Tamperer

from adapters.log.reader import LogReader
from codespace_es.event_catalogue import CATALOGUE
from codespace_es.vocabulary.file_change import digest_of
from codespace_es.vocabulary.identifiers import claim_stream, workspace_key
from replay.story import NothingRecordedError, Story, tell


def story_of(life, name: str) -> Story:
    with LogReader(life.path, CATALOGUE) as reader:
        return tell(reader, name)


def test_an_operation_is_told_with_plan_diff_request_claim_and_server(written_life):
    updated = written_life.operations["updated"]
    story = story_of(written_life, updated)
    assert (story.id, story.kind) == (updated, "operation")
    assert [entry.position for entry in story.events] == [8, 9, 18]
    assert [entry.position for entry in story.related] == [7, 16, 17]
    assert story.report is not None
    assert (story.report.status, story.report.reverted_by) == ("applied", written_life.operations["undo"])
    assert story.request == f"*** Begin Patch {updated}"
    assert story.claim_id == claim_stream("operation_key", "key-2")
    assert story.instance is not None
    assert story.instance.position == 2
    (file,) = story.files
    assert file.planned.path == "a.txt"
    assert file.diff == "--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-one\n+two\n"
    assert file.note is None
    assert story.details[0]["workspace_id"] == "demo"


def test_an_operation_key_leads_to_its_operation(written_life):
    assert story_of(written_life, "key-2") == story_of(written_life, written_life.operations["updated"])


def test_a_preview_is_told_without_diffs(written_life):
    (file,) = story_of(written_life, written_life.operations["checked"]).files
    assert (file.diff, bool(file.note)) == (None, True)


def test_an_operation_whose_contents_were_pruned_is_still_told(life):
    with Tamperer(life.path) as tamperer:
        tamperer.execute("DELETE FROM bodies")
    story = story_of(life, life.operations["updated"])
    assert story.request is None
    assert [file.diff for file in story.files] == [None]
    assert story.report is not None
    assert story.report.status == "applied"


def test_an_added_and_a_deleted_file_are_shown_against_nothing(written_life):
    (file,) = story_of(written_life, written_life.operations["deleted"]).files
    assert file.diff == "--- a/b/c.txt\n+++ /dev/null\n@@ -1 +0,0 @@\n-c\n"


def test_a_file_that_is_no_text_has_a_note_instead_of_lines(life):
    operation = life.operations["updated"]
    with Tamperer(life.path) as tamperer:
        tamperer.change_body(operation, digest_of(b"two\n"), b"\x00\xff\x00")
    (file,) = story_of(life, operation).files
    assert file.note == "Not text: no lines to show."


def test_an_unfinished_operation_is_told_as_far_as_it_went(written_life):
    story = story_of(written_life, written_life.operations["open"])
    assert story.report is not None
    assert (story.report.status, len(story.events)) == ("unknown", 1)


def test_an_instance_is_told_with_what_it_began(written_life):
    operations = written_life.operations
    first = story_of(written_life, operations["updated"]).instance.stream_id
    story = story_of(written_life, first)
    assert (story.kind, [entry.position for entry in story.events]) == ("instance", [2, 15, 23])
    begun = [operations[name] for name in ("added", "updated", "rejected", "checked", "undo", "left")]
    assert [entry.stream_id for entry in story.begun] == begun
    assert story.begun_count == 6


def test_a_running_instance_is_told_with_what_it_has_begun_so_far(written_life):
    third = story_of(written_life, written_life.operations["open"]).instance.stream_id
    assert [entry.position for entry in story_of(written_life, third).begun] == [30]


@pytest.mark.parametrize(("name", "kind", "positions"), [
    ("store", "store", [1, 26]),
    (workspace_key("machine-1", "/srv/demo"), "workspace", [3]),
    (claim_stream("operation_key", "key-1"), "claim", [4]),
])
def test_any_other_stream_is_told_by_its_events(written_life, name, kind, positions):
    story = story_of(written_life, name)
    assert (story.kind, [entry.position for entry in story.events]) == (kind, positions)


@pytest.mark.parametrize("name", ["op-none", "", "key-9"])
def test_what_the_log_does_not_know_is_said_so(written_life, name):
    with pytest.raises(NothingRecordedError):
        story_of(written_life, name)
