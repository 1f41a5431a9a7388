"""What a hold decides: who is too late, who is second, and what only a resume that has begun may do."""

from datetime import timedelta

import pytest
from pydantic import ValidationError
from samples import (
    BODY,
    CONSUMED,
    CREATED_AT,
    DENIED,
    EXPIRED,
    EXPIRES_AT,
    GRANTED,
    HELD_CREATED,
    HELD_SHORTLY,
    OPERATION_ID,
    PARKED,
    QUEUED,
    RESUMING,
)

from codespace_es.aggregates.approval import (
    APPROVAL,
    ApprovalConsumed,
    ApprovalDenied,
    ApprovalGranted,
    BeginEffect,
    ConsumeApproval,
    CreateApproval,
    DenyApproval,
    ExpireApproval,
    GrantApproval,
    ParkApproval,
    QueueApproval,
    hold_claim,
    wire_state,
)
from codespace_es.vocabulary.errors import CodespaceError, ErrorCode
from codespace_es.vocabulary.event import Fault
from codespace_es.vocabulary.file_change import digest_of
from codespace_es.vocabulary.identifiers import WorkspaceKey

EARLY = CREATED_AT
LAST_MOMENT = EXPIRES_AT - timedelta(microseconds=1)
STATES = {
    "pending": [HELD_SHORTLY],
    "granted": [HELD_SHORTLY, GRANTED],
    "queued": [HELD_SHORTLY, GRANTED, QUEUED],
    "parked": [HELD_SHORTLY, GRANTED, QUEUED, PARKED],
    "resuming": [HELD_SHORTLY, GRANTED, QUEUED, RESUMING],
    "consumed": [HELD_SHORTLY, GRANTED, QUEUED, RESUMING, CONSUMED],
    "denied": [HELD_SHORTLY, DENIED],
    "expired": [HELD_SHORTLY, EXPIRED],
}


def decide(state, command):
    return APPROVAL.decide(APPROVAL.fold(STATES[state]), command)


def test_a_hold_begins_once():
    assert APPROVAL.decide(APPROVAL.fold([]), CreateApproval(HELD_CREATED)) == [HELD_CREATED]
    with pytest.raises(AssertionError):
        decide("pending", CreateApproval(HELD_CREATED))


@pytest.mark.parametrize(("state", "command", "events"), [
    ("pending", GrantApproval("Yes.", LAST_MOMENT), [ApprovalGranted(reason="Yes.")]),
    ("pending", DenyApproval(None, LAST_MOMENT), [ApprovalDenied()]),
    ("pending", ExpireApproval(LAST_MOMENT), []),
    ("pending", ExpireApproval(EXPIRES_AT), [EXPIRED]),
    ("granted", ExpireApproval(EXPIRES_AT), [EXPIRED]),
    ("granted", QueueApproval(LAST_MOMENT), [QUEUED]),
    ("parked", QueueApproval(EARLY), [QUEUED]),
    ("queued", ParkApproval(PARKED.fault), [PARKED]),
    ("queued", BeginEffect(OPERATION_ID), [RESUMING]),
    ("queued", ConsumeApproval(CONSUMED), [CONSUMED]),
    ("resuming", ConsumeApproval(CONSUMED), [CONSUMED]),
])
def test_a_command_leads_to_its_events(state, command, events):
    assert decide(state, command) == events


@pytest.mark.parametrize("state", ["queued", "parked", "resuming", "consumed", "denied", "expired"])
def test_what_has_begun_or_is_over_is_never_too_late(state):
    assert decide(state, ExpireApproval(EXPIRES_AT + timedelta(days=1))) == []


@pytest.mark.parametrize("state", [name for name in STATES if name != "pending"])
@pytest.mark.parametrize("kind", [GrantApproval, DenyApproval])
def test_only_what_is_pending_is_decided(state, kind):
    with pytest.raises(CodespaceError) as refusal:
        decide(state, kind(None, EARLY))
    assert refusal.value.code == ErrorCode.APPROVAL_CONFLICT
    assert ("queued" if state == "parked" else state) in refusal.value.message


@pytest.mark.parametrize("state", ["pending", "queued", "resuming", "consumed", "denied", "expired"])
def test_only_what_is_granted_or_parked_is_resumed(state):
    with pytest.raises(CodespaceError) as refusal:
        decide(state, QueueApproval(EARLY))
    assert refusal.value.code == ErrorCode.APPROVAL_CONFLICT


@pytest.mark.parametrize(("state", "command"), [
    ("pending", GrantApproval(None, EXPIRES_AT)),
    ("pending", DenyApproval(None, EXPIRES_AT)),
    ("granted", QueueApproval(EXPIRES_AT)),
])
def test_whoever_comes_too_late_is_told_so(state, command):
    with pytest.raises(CodespaceError, match="expired") as refusal:
        decide(state, command)
    assert refusal.value.code == ErrorCode.APPROVAL_CONFLICT


def test_a_denial_tells_its_reason_to_whoever_resumes():
    with pytest.raises(CodespaceError, match=r"denied: No\."):
        decide("denied", QueueApproval(EARLY))


@pytest.mark.parametrize("state", [name for name in STATES if name != "queued"])
def test_an_effect_begins_only_from_a_resume_on_its_way(state):
    with pytest.raises(AssertionError):
        decide(state, BeginEffect(OPERATION_ID))
    assert decide(state, ParkApproval(PARKED.fault)) == []


@pytest.mark.parametrize("state", [name for name in STATES if name not in ("queued", "resuming")])
def test_a_hold_is_consumed_once_and_only_by_its_resume(state):
    with pytest.raises(AssertionError):
        decide(state, ConsumeApproval(CONSUMED))


@pytest.mark.parametrize("outcome", [{}, {"result": BODY, "fault": Fault(code=ErrorCode.INTERNAL, message="No.")}])
def test_a_consumed_hold_has_exactly_one_outcome(outcome):
    with pytest.raises(ValidationError):
        ApprovalConsumed(**outcome)


@pytest.mark.parametrize("state", STATES)
def test_clients_know_a_parked_hold_as_queued(state):
    assert wire_state(APPROVAL.fold(STATES[state])) == ("queued" if state == "parked" else state)


def test_a_request_is_claimed_by_workspace_and_fingerprint():
    one, other = WorkspaceKey("wsp-1"), WorkspaceKey("wsp-2")
    names = {hold_claim(key, digest_of(text)) for key in (one, other) for text in (b"a", b"b")}
    assert len(names) == 4
