"""What each aggregate decides: given a state, when a command comes, then these events or this refusal."""

import pytest
from samples import (
    APPLIED,
    BODY,
    BOUND,
    CALL_REFUSED,
    CHECKED,
    CREATED,
    DIGEST,
    END_REQUESTED,
    EXITED,
    HOLD_ID,
    HOLD_TAKEN,
    INPUT_SENT,
    KEY_TAKEN,
    MINTED,
    NOT_STARTED,
    OPERATION_ID,
    OTHER_ID,
    RECOVERED,
    REJECTED,
    RELEASED,
    REMOVED,
    RESIZED,
    REVERTED,
    ROLLED_BACK,
    SPAWNED,
    STARTED,
    STOPPED,
    TAKEN_OVER,
    TIME_IS_UP,
    UNKNOWN,
)

from codespace_es.aggregates.claim import CLAIM, Free, ReleaseClaim, TakeClaim, Taken, is_repeat
from codespace_es.aggregates.instance import (
    INSTANCE,
    RecordRefusal,
    RecoverInstance,
    StartInstance,
    StopInstance,
    TakeOverInstance,
)
from codespace_es.aggregates.operation import (
    OPERATION,
    Finished,
    FinishOperation,
    MarkReverted,
    Minted,
    MintFinishedOperation,
    MintOperation,
    Reverted,
    Unminted,
    require_revertible,
)
from codespace_es.aggregates.process import (
    PROCESS,
    RecordExit,
    RecordInput,
    RecordNoStart,
    RecordResize,
    RecordSpawn,
    RequestEnd,
)
from codespace_es.aggregates.store import STORE, STORE_FORMAT, CreateStore, RemoveBodies, StoreCreated
from codespace_es.aggregates.workspace import WORKSPACE, BindWorkspace
from codespace_es.vocabulary.errors import CodespaceError, ErrorCode
from codespace_es.vocabulary.file_change import digest_of

MOVED = BOUND.model_copy(update={"inode": 9})
TAKE_KEY = TakeClaim("operation_key", OPERATION_ID, DIGEST)
TAKE_HOLD = TakeClaim("hold", HOLD_ID, DIGEST)


@pytest.mark.parametrize(("decider", "given", "command", "then"), [
    pytest.param(STORE, [], CreateStore("store-1", "codespace-es/1"),
                 [StoreCreated(store_id="store-1", format=STORE_FORMAT, software="codespace-es/1")],
                 id="a log begins with its id and format"),
    pytest.param(STORE, [CREATED], CreateStore("store-2", "codespace-es/2"), [], id="a log begins once"),
    pytest.param(STORE, [CREATED], RemoveBodies(REMOVED), [REMOVED], id="a removal is recorded"),
    pytest.param(INSTANCE, [], StartInstance(STARTED), [STARTED], id="an instance starts"),
    pytest.param(INSTANCE, [STARTED], StopInstance(STOPPED), [STOPPED], id="a running instance stops"),
    pytest.param(INSTANCE, [STARTED], RecordRefusal(CALL_REFUSED), [CALL_REFUSED], id="a refused call leaves a trace"),
    pytest.param(INSTANCE, [STARTED, CALL_REFUSED], RecoverInstance(RECOVERED), [RECOVERED], id="a dead one is closed"),
    pytest.param(INSTANCE, [STARTED, STOPPED], StopInstance(STOPPED), [], id="a stopped instance stops no more"),
    pytest.param(INSTANCE, [STARTED, RECOVERED], StopInstance(STOPPED), [], id="a recovered instance stops no more"),
    pytest.param(INSTANCE, [STARTED], TakeOverInstance(TAKEN_OVER), [TAKEN_OVER], id="one of a lost host is shut out"),
    pytest.param(INSTANCE, [STARTED, STOPPED], TakeOverInstance(TAKEN_OVER), [], id="a stopped one isn't shut out"),
    pytest.param(INSTANCE, [STARTED, STOPPED], RecoverInstance(RECOVERED), [], id="a stopped one isn't recovered"),
    pytest.param(INSTANCE, [STARTED, RECOVERED], RecoverInstance(RECOVERED), [], id="a dead one is closed once"),
    pytest.param(INSTANCE, [STARTED, STOPPED], RecordRefusal(CALL_REFUSED), [], id="an ended one records no refusal"),
    pytest.param(WORKSPACE, [], BindWorkspace(BOUND), [BOUND], id="a directory is put on record"),
    pytest.param(WORKSPACE, [BOUND], BindWorkspace(BOUND), [], id="what is on record isn't recorded again"),
    pytest.param(WORKSPACE, [BOUND], BindWorkspace(MOVED), [MOVED], id="another directory is put on record"),
    pytest.param(WORKSPACE, [BOUND, MOVED], BindWorkspace(BOUND), [BOUND], id="only the newest record counts"),
    pytest.param(CLAIM, [], TAKE_KEY, [KEY_TAKEN], id="a free key is taken"),
    pytest.param(CLAIM, [], TAKE_HOLD, [HOLD_TAKEN], id="a free hold is taken"),
    pytest.param(CLAIM, [HOLD_TAKEN, RELEASED], TAKE_HOLD, [HOLD_TAKEN], id="a released hold is taken again"),
    pytest.param(CLAIM, [HOLD_TAKEN], ReleaseClaim(HOLD_ID), [RELEASED], id="a hold is released by its holder"),
    pytest.param(OPERATION, [], MintOperation(MINTED), [MINTED], id="a patch is minted"),
    pytest.param(OPERATION, [], MintFinishedOperation(MINTED, REJECTED), [MINTED, REJECTED],
                 id="a refusal is minted and finished at once"),
    pytest.param(OPERATION, [], MintFinishedOperation(MINTED, CHECKED), [MINTED, CHECKED],
                 id="a preview is minted and finished at once"),
    pytest.param(OPERATION, [MINTED], FinishOperation(APPLIED), [APPLIED], id="a patch is finished"),
    pytest.param(OPERATION, [MINTED], FinishOperation(UNKNOWN), [UNKNOWN], id="a lost patch is finished too"),
    pytest.param(OPERATION, [MINTED, APPLIED], MarkReverted(OTHER_ID), [REVERTED], id="an applied patch is undone"),
    pytest.param(PROCESS, [], RecordSpawn(SPAWNED), [SPAWNED], id="a command is spawned"),
    pytest.param(PROCESS, [], RecordNoStart(NOT_STARTED), [NOT_STARTED], id="a command can't be started"),
    pytest.param(PROCESS, [SPAWNED], RecordInput(INPUT_SENT), [INPUT_SENT], id="a live one is written to"),
    pytest.param(PROCESS, [SPAWNED], RecordResize(RESIZED), [RESIZED], id="a live one is resized"),
    pytest.param(PROCESS, [SPAWNED], RequestEnd(TIME_IS_UP), [TIME_IS_UP], id="a live one is asked to end"),
    pytest.param(PROCESS, [SPAWNED, TIME_IS_UP], RequestEnd(END_REQUESTED), [], id="the first cause stands"),
    pytest.param(PROCESS, [SPAWNED, END_REQUESTED], RecordExit(EXITED), [EXITED], id="a command ends"),
    pytest.param(PROCESS, [SPAWNED, EXITED], RecordExit(EXITED), [], id="a command ends once"),
    pytest.param(PROCESS, [SPAWNED, EXITED], RequestEnd(TIME_IS_UP), [], id="what has ended needs no end"),
    pytest.param(PROCESS, [NOT_STARTED], RecordExit(EXITED), [], id="what never began doesn't end"),
])
def test_a_command_leads_to_its_events(decider, given, command, then):
    assert decider.decide(decider.fold(given), command) == then


@pytest.mark.parametrize(("given", "reason"), [
    ([], "never minted"),
    ([MINTED], "isn't finished"),
    ([MINTED, ROLLED_BACK], "failed_rolled_back"),
    ([MINTED, UNKNOWN], "unknown"),
    ([MINTED, CHECKED], "checked"),
    ([MINTED, REJECTED], "rejected"),
    ([MINTED, APPLIED, REVERTED], f"undone already, by {OTHER_ID}"),
])
def test_what_was_not_applied_or_is_undone_cannot_be_undone(given, reason):
    with pytest.raises(CodespaceError) as refusal:
        OPERATION.decide(OPERATION.fold(given), MarkReverted(OTHER_ID))
    assert refusal.value.code == ErrorCode.REVERT_CONFLICT
    assert reason in refusal.value.message


@pytest.mark.parametrize("given", [[], [NOT_STARTED], [SPAWNED, EXITED]])
@pytest.mark.parametrize("command", [RecordInput(INPUT_SENT), RecordResize(RESIZED)])
def test_what_does_not_run_cannot_be_driven(given, command):
    with pytest.raises(CodespaceError) as refusal:
        PROCESS.decide(PROCESS.fold(given), command)
    assert refusal.value.code == ErrorCode.PROCESS_NOT_RUNNING


def test_a_refused_undo_names_the_one_that_came_before():
    with pytest.raises(CodespaceError) as refusal:
        require_revertible(Reverted(MINTED, APPLIED, OTHER_ID))
    assert refusal.value.detail == {"reverted_by": OTHER_ID}


def test_an_applied_operation_may_be_undone():
    state = Finished(MINTED, APPLIED)
    assert require_revertible(state) is state


@pytest.mark.parametrize("taken", [KEY_TAKEN, HOLD_TAKEN])
@pytest.mark.parametrize("command", [TAKE_KEY, TAKE_HOLD])
def test_what_is_held_cannot_be_taken(taken, command):
    with pytest.raises(CodespaceError) as refusal:
        CLAIM.decide(CLAIM.fold([taken]), command)
    assert refusal.value.code == ErrorCode.OPERATION_KEY_CONFLICT


@pytest.mark.parametrize(("decider", "given", "command"), [
    (STORE, [], RemoveBodies(REMOVED)),
    (INSTANCE, [STARTED], StartInstance(STARTED)),
    (INSTANCE, [STARTED, STOPPED], StartInstance(STARTED)),
    (CLAIM, [], ReleaseClaim(HOLD_ID)),
    (CLAIM, [KEY_TAKEN], ReleaseClaim(HOLD_ID)),
    (CLAIM, [HOLD_TAKEN.model_copy(update={"holder_id": "appr-2"})], ReleaseClaim(HOLD_ID)),
    (OPERATION, [MINTED], MintOperation(MINTED)),
    (OPERATION, [MINTED], MintFinishedOperation(MINTED, REJECTED)),
    (OPERATION, [], MintFinishedOperation(MINTED, APPLIED)),
    (OPERATION, [], FinishOperation(APPLIED)),
    (OPERATION, [MINTED, APPLIED], FinishOperation(APPLIED)),
    (OPERATION, [MINTED, APPLIED, REVERTED], FinishOperation(APPLIED)),
    (PROCESS, [SPAWNED], RecordSpawn(SPAWNED)),
    (PROCESS, [SPAWNED], RecordNoStart(NOT_STARTED)),
    (PROCESS, [SPAWNED, EXITED], RecordSpawn(SPAWNED)),
    (PROCESS, [NOT_STARTED], RecordSpawn(SPAWNED)),
])
def test_what_only_a_fault_of_ours_could_ask_for_is_not_decided(decider, given, command):
    with pytest.raises(AssertionError):
        decider.decide(decider.fold(given), command)


@pytest.mark.parametrize(("state", "is_same"), [
    (Free(), False),
    (Taken("operation_key", OPERATION_ID, DIGEST), True),
    (Taken("operation_key", OPERATION_ID, digest_of(b"other")), False),
])
def test_a_request_repeats_the_holders_when_the_fingerprints_are_equal(state, is_same):
    assert is_repeat(state, DIGEST) == is_same


def test_a_state_remembers_what_its_events_said():
    assert OPERATION.fold([]) == Unminted()
    assert OPERATION.fold([MINTED]) == Minted(MINTED)
    assert OPERATION.fold([MINTED, APPLIED]) == Finished(MINTED, APPLIED)
    assert MINTED.request == BODY
