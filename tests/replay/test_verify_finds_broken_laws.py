"""`verify` finds what no hash shows: events that were written, but can't be true together."""

import json
from pathlib import Path

import pytest
from stored_log import load
from tampering import Tamperer

from adapters.log.reader import LogReader
from codespace_es.aggregates.claim import ClaimTaken
from codespace_es.aggregates.instance import InstanceCallRefused, InstanceRecovered
from codespace_es.aggregates.operation import OperationFinished, OperationReverted
from codespace_es.aggregates.store import StoreBodiesRemoved, StoreCopied
from codespace_es.aggregates.workspace import WorkspaceBound
from codespace_es.event_catalogue import CATALOGUE
from codespace_es.ports.log import NewBody
from codespace_es.vocabulary.errors import ErrorCode
from codespace_es.vocabulary.file_change import digest_of
from codespace_es.vocabulary.identifiers import STORE_STREAM, OperationId, StreamId, claim_stream
from replay.finding import Law
from replay.verify import verify

STORED = Path(__file__).parent / "logs" / "v0.1.0"


def places(path: Path) -> dict[Law, int]:
    with LogReader(path, CATALOGUE) as reader:
        report = verify(reader)
    assert report.is_ok == (not report.findings)
    return {finding.law: finding.position for finding in report.findings}


def change(path: Path, position: int, old: bytes, new: bytes) -> None:
    def replace(state: bytes) -> bytes:
        assert old in state
        return state.replace(old, new)

    with Tamperer(path) as tamperer:
        tamperer.change_state(position, replace)
        tamperer.hide()


def running(tamperer: Tamperer) -> str:
    return tamperer.execute("SELECT instance_id FROM open_items WHERE kind = 'instance'")[0][0]


def test_a_claim_without_its_holder_is_found(life):
    taken = ClaimTaken(kind="operation_key", holder_id=OperationId("op-none"), fingerprint=digest_of(b""))
    with Tamperer(life.path) as tamperer:
        position = tamperer.append(claim_stream("operation_key", "new"), 1, taken, like=30)
    assert places(life.path) == {Law.CLAIM: position}


def test_a_claim_by_an_operation_that_began_before_is_found(life):
    taken = ClaimTaken(kind="operation_key", holder_id=life.operations["open"], fingerprint=digest_of(b""))
    with Tamperer(life.path) as tamperer:
        position = tamperer.append(claim_stream("operation_key", "new"), 1, taken, like=30)
    assert places(life.path) == {Law.CLAIM: position}


def test_a_keyed_operation_without_its_claim_is_found(life):
    with Tamperer(life.path) as tamperer:
        tamperer.drop(29)
        tamperer.hide()
    found = places(life.path)
    assert found[Law.CLAIM] == 29


def test_a_claim_with_another_fingerprint_is_found(life):
    with Tamperer(life.path) as tamperer:
        fingerprint = json.loads(tamperer.state(29).partition(b"\n")[2])["fingerprint"].encode()
    change(life.path, 29, fingerprint, digest_of(b"other").encode())
    assert places(life.path) == {Law.CLAIM: 30}


def test_a_key_that_is_claimed_twice_cannot_be_folded(life):
    taken = ClaimTaken(kind="operation_key", holder_id=life.operations["open"], fingerprint=digest_of(b""))
    with Tamperer(life.path) as tamperer:
        position = tamperer.append(claim_stream("operation_key", "key-1"), 2, taken, like=30)
    assert places(life.path) == {Law.FOLDS: position}


def test_an_event_of_an_instance_that_has_stopped_is_found(life):
    change(life.path, 28, b'"host":"host"', b'"host":"else"')
    with Tamperer(life.path) as tamperer:
        binding = WorkspaceBound.model_validate_json(tamperer.state(3).partition(b"\n")[2])
        stream = tamperer.execute("SELECT stream_id FROM events WHERE position = 3")[0][0]
        position = tamperer.append(stream, 2, binding, like=27)
    assert places(life.path) == {Law.INSTANCE: position}


def test_an_event_of_an_instance_in_its_own_ended_stream_cannot_follow(life):
    refused = InstanceCallRefused(tool="read", code=ErrorCode.PATH_ESCAPE, arguments=digest_of(b""))
    with Tamperer(life.path) as tamperer:
        stream = tamperer.execute("SELECT stream_id FROM events WHERE position = 27")[0][0]
        position = tamperer.append(stream, 3, refused, like=28)
    assert places(life.path) == {Law.FOLDS: position}


def test_an_instance_cannot_find_itself_dead(life):
    with Tamperer(life.path) as tamperer:
        recovered = InstanceRecovered(operations_closed=0, processes_closed=0, resolves_closed=0)
        instance_id = running(tamperer)
        position = tamperer.append(instance_id, 2, recovered, like=30)
        tamperer.execute("DELETE FROM open_items WHERE stream_id = ?", instance_id)
    assert places(life.path) == {Law.INSTANCE: position}


def test_a_workspace_under_another_key_than_its_directory_is_found(life):
    change(life.path, 3, b'"root":"/srv/demo"', b'"root":"/srv/else"')
    assert places(life.path) == {Law.WORKSPACE: 3}


def test_a_patch_in_a_directory_that_is_not_on_record_is_found(life):
    with Tamperer(life.path) as tamperer:
        key = tamperer.execute("SELECT stream_id FROM events WHERE position = 3")[0][0]
    change(life.path, 24, key.encode(), b"wsp-elsewhere")
    assert places(life.path) == {Law.WORKSPACE: 24}


def test_a_refusal_without_its_fault_is_found(life):
    with Tamperer(life.path) as tamperer:
        tamperer.change_state(12, lambda state: state[: state.index(b',"fault"')] + b"}")
        tamperer.hide()
    assert places(life.path) == {Law.OPERATION: 12}


def test_an_end_without_its_result_is_found(life):
    change(life.path, 9, b'"result"', b'"findings":[],"result"')
    assert places(life.path) == {}
    with Tamperer(life.path) as tamperer:
        state = tamperer.state(9)
        start = state.index(b'"result"')
        result = state[start: state.index(b"}", start) + 2]
    change(life.path, 9, result, b"")
    assert places(life.path) == {Law.OPERATION: 9, Law.BODIES: 18}, "and its answer is named by nothing any more"


def test_a_preview_that_is_said_to_be_applied_is_found(life):
    change(life.path, 14, b'"status":"checked"', b'"status":"applied"')
    assert places(life.path) == {Law.OPERATION: 14}


def test_a_patch_that_is_said_to_be_a_preview_is_found(life):
    change(life.path, 9, b'"status":"applied"', b'"status":"checked"')
    assert places(life.path) == {Law.OPERATION: 9}


def test_a_result_that_tells_of_fewer_changes_than_were_planned_is_found(life):
    operation = life.operations["added"]
    with Tamperer(life.path) as tamperer:
        body = NewBody(StreamId(operation), "result", b'{"changes":[{}]}')
        tamperer.add_body(body, like=6)
        finished = OperationFinished(status="applied", result=body.body).model_dump_json(exclude_none=True).encode()
        tamperer.change_state(6, lambda state: state.partition(b"\n")[0] + b"\n" + finished)
        tamperer.hide()
    assert places(life.path) == {Law.OPERATION: 6, Law.BODIES: 6}


@pytest.mark.parametrize("nth", [0, 1])
def test_an_undo_of_several_without_one_of_its_marks_is_found(tmp_path, nth):
    load((STORED / "undoing.jsonl").read_text(encoding="utf-8"), tmp_path / "log.db")
    assert places(tmp_path / "log.db") == {}
    with Tamperer(tmp_path / "log.db") as tamperer:
        marks = tamperer.execute("SELECT position FROM events WHERE topic = 'operation.reverted.v1' ORDER BY position")
        tamperer.drop(marks[nth][0])
        tamperer.hide()
    with LogReader(tmp_path / "log.db", CATALOGUE) as reader:
        told = {finding.law: finding.problem for finding in verify(reader).findings}
    assert "which it undoes, isn't marked in the same append" in told[Law.OPERATION]


def test_an_undo_without_its_mark_is_found(life):
    with Tamperer(life.path) as tamperer:
        tamperer.drop(18)
        tamperer.hide()
    assert places(life.path)[Law.OPERATION] == 17


def test_a_mark_without_its_undo_is_found(life):
    with Tamperer(life.path) as tamperer:
        position = tamperer.append(life.operations["added"], 3, OperationReverted(by=life.operations["undo"]), like=30)
    assert places(life.path) == {Law.OPERATION: position}


def test_a_log_that_begins_twice_is_found(life):
    with Tamperer(life.path) as tamperer:
        created = CATALOGUE["store.created.v1"].model_validate_json(tamperer.state(1).partition(b"\n")[2])
        position = tamperer.append(STORE_STREAM, 3, created, like=30)
    assert places(life.path) == {Law.FOLDS: position}


def test_a_log_of_a_newer_format_is_found(life):
    change(life.path, 1, b'"format":1', b'"format":9')
    assert places(life.path) == {Law.STORE: 1}


def test_a_log_without_its_beginning_is_found(life):
    with Tamperer(life.path) as tamperer:
        tamperer.drop(1)
        tamperer.hide()
    assert places(life.path)[Law.STORE] == 1


def test_a_copy_that_goes_on_from_another_place_is_found(life):
    with Tamperer(life.path) as tamperer:
        copied = StoreCopied(from_store_id="other", from_position=12, from_hash=digest_of(b""))
        position = tamperer.append(STORE_STREAM, 3, copied, like=30)
    assert places(life.path) == {Law.STORE: position}


def _remove(tamperer: Tamperer, version: int, removed: list[tuple[str, str]], *, count: int) -> int:
    body = NewBody(STORE_STREAM, "result", json.dumps(removed).encode())
    tamperer.add_body(body)
    event = StoreBodiesRemoved(reason="pruned", count=count, total_bytes=4, digests=body.body)
    return tamperer.append(STORE_STREAM, version, event, like=30)


def test_a_removal_explains_what_is_missing_once(life):
    operation = life.operations["updated"]
    removed = [(operation, digest_of(b"two\n"))]
    with Tamperer(life.path) as tamperer:
        tamperer.drop_body(*removed[0])
        _remove(tamperer, 3, removed, count=1)
    assert places(life.path) == {}
    with Tamperer(life.path) as tamperer:
        position = _remove(tamperer, 4, removed, count=1)
    assert places(life.path) == {Law.BODIES: position}


def test_a_removal_of_another_streams_content_explains_nothing(life):
    with Tamperer(life.path) as tamperer:
        tamperer.drop_body(life.operations["updated"], digest_of(b"two\n"))
        _remove(tamperer, 3, [(life.operations["undo"], digest_of(b"two\n"))], count=1)
    assert places(life.path) == {Law.BODIES: 8}


def test_a_removal_that_counts_wrongly_is_found(life):
    with Tamperer(life.path) as tamperer:
        position = _remove(tamperer, 3, [(life.operations["updated"], digest_of(b"x"))], count=2)
    assert places(life.path) == {Law.BODIES: position}


NONSENSE = [b"", b"{", b"{}", b"7", b"[1]", b'[["a"]]', b'[["a", 1]]', b"[" * 100_000, b"\xff"]


@pytest.mark.parametrize("content", NONSENSE, ids=range(len(NONSENSE)))
def test_a_removal_that_lists_nonsense_is_found(life, content):
    with Tamperer(life.path) as tamperer:
        body = NewBody(STORE_STREAM, "result", content)
        tamperer.add_body(body)
        event = StoreBodiesRemoved(reason="pruned", count=1, total_bytes=4, digests=body.body)
        position = tamperer.append(STORE_STREAM, 3, event, like=30)
    assert places(life.path) == {Law.BODIES: position}
