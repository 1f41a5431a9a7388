"""Holds, from the request to the end of what was held."""

from codespace_es.aggregates.approval import (
    ApprovalConsumed,
    ApprovalCreated,
    ApprovalDenied,
    ApprovalExpired,
    ApprovalGranted,
    ApprovalParked,
    ApprovalQueued,
    ApprovalResuming,
)
from codespace_es.projections.sentences.words import Sentences, said


def _approval_created(event: ApprovalCreated) -> str:
    why = "as its operator wants" if event.origin == "policy" else "as its caller wants"
    return f"{event.title}: held in workspace {event.workspace_id}, {why}; nothing has run."


def _approval_granted(event: ApprovalGranted) -> str:
    return f"It was granted{said(event.reason)}."


def _approval_denied(event: ApprovalDenied) -> str:
    return f"It was denied{said(event.reason)}; it will never run."


def _approval_expired(_event: ApprovalExpired) -> str:
    return "Its time is over; it will never run."


def _approval_queued(_event: ApprovalQueued) -> str:
    return "It is about to run."


def _approval_parked(event: ApprovalParked) -> str:
    return f"It couldn't run yet: {event.fault.message.rstrip('.')}."


def _approval_resuming(event: ApprovalResuming) -> str:
    return f"It runs as {event.effect_id}."


def _approval_consumed(event: ApprovalConsumed) -> str:
    if event.fault is not None:
        return f"It is over, refused: {event.fault.code}: {event.fault.message.rstrip('.')}."
    if event.effect_id is None:
        return "It is over: its key had done it before."
    return f"It is over, having led to {event.effect_id}."


APPROVAL_SENTENCES: Sentences = {
    ApprovalCreated: _approval_created,
    ApprovalGranted: _approval_granted,
    ApprovalDenied: _approval_denied,
    ApprovalExpired: _approval_expired,
    ApprovalQueued: _approval_queued,
    ApprovalParked: _approval_parked,
    ApprovalResuming: _approval_resuming,
    ApprovalConsumed: _approval_consumed,
}
