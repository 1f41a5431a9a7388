"""`/operator`: what the operator may do, as plain JSON behind a token of its own.

What changes something goes through the door, as from every other channel; what only looks at the log reads its file.
A grant or an undo from here is the operator's own: it is never held. Source: contract A4, A6; decision 24.
"""

from collections.abc import Mapping

from starlette.routing import BaseRoute, Route

from adapters.http.audit import (
    AskOperation,
    AskState,
    AskTimeline,
    AskVerification,
    Audit,
    LogState,
    OperationStory,
    Page,
    Verification,
    Verify,
)
from adapters.http.event_stream import EventStreams, FollowTimeline
from adapters.http.inbox import steering_calls
from adapters.http.json_calls import Answerer, JsonCall, JsonSide, routes_of
from codespace_es.codespace import Codespace
from codespace_es.command_handlers.asking import AskApproval, ListHolds, OpenHolds
from codespace_es.command_handlers.deciding import HoldState, ResolveHold
from codespace_es.command_handlers.driving import Done, TerminateProcess
from codespace_es.command_handlers.inbox import ReleaseIntentCommand
from codespace_es.command_handlers.observing import (
    AskProcess,
    ListProcesses,
    OutputRead,
    ProcessList,
    ReadProcess,
)
from codespace_es.command_handlers.previewing import AskPending, ListPending, PendingList, PendingPreview
from codespace_es.command_handlers.resolve_request import ResolveAction
from codespace_es.command_handlers.reverting import RevertOperation
from codespace_es.command_handlers.steering import IntentAnswer
from codespace_es.projections.approval_status import ApprovalReport
from codespace_es.projections.process_status import ProcessReport
from codespace_es.projections.resolve_result import ResolveResult
from codespace_es.projections.timeline import TimelineEntry
from codespace_es.vocabulary.answer import Command
from codespace_es.vocabulary.errors import ErrorCode
from codespace_es.vocabulary.patch_result import PatchResult

E = ErrorCode
_APPROVAL = "/operator/approvals/{approval_id}"
_PROCESS = "/operator/processes/{process_id}"
_OPERATION = "/operator/operations/{operation_id}"
EVENTS_PATH = "/operator/timeline/events"

OPERATOR_CALLS = (
    JsonCall("GET", "/operator/approvals", ListHolds, OpenHolds, listed="approvals"),
    JsonCall("GET", _APPROVAL, AskApproval, ApprovalReport, (E.APPROVAL_NOT_FOUND,)),
    *(
        JsonCall(
            "POST", f"{_APPROVAL}/{decision}", ResolveHold, HoldState, (E.APPROVAL_NOT_FOUND, E.APPROVAL_CONFLICT),
            fixed={"decision": decision}, summary=f"{decision.capitalize()} a hold.",
        )
        for decision in ("grant", "deny")
    ),
    *steering_calls("/operator"),
    JsonCall(
        "POST", "/operator/intents/{intent_id}/release", ReleaseIntentCommand, IntentAnswer,
        (E.INTENT_NOT_FOUND, E.INTENT_NOT_EDITABLE),
    ),
    JsonCall("GET", "/operator/pending", ListPending, PendingList, listed="actions"),
    JsonCall("GET", "/operator/pending/{id}", AskPending, PendingPreview, (E.NO_PENDING_ACTION, E.WORKSPACE_NOT_FOUND)),
    *(
        JsonCall(
            "POST", f"/operator/pending/{{id}}/{action}", ResolveAction, ResolveResult,
            (
                E.UNAUTHORIZED, E.WORKSPACE_NOT_FOUND, E.NO_PENDING_ACTION, E.PENDING_ACTION_MISMATCH,
                E.STALE_PREVIEW, E.APPLY_FAILED, E.WORKSPACE_BUSY, E.RESOURCE_QUEUE_FULL,
            ),
            fixed={"action": action}, summary=f"{action.capitalize()} what a tool has proposed.",
        )
        for action in ("apply", "discard")
    ),
    JsonCall("GET", "/operator/timeline", AskTimeline, Page),
    JsonCall("GET", EVENTS_PATH, FollowTimeline, TimelineEntry, (E.RESOURCE_QUEUE_FULL,), is_stream=True),
    JsonCall("GET", "/operator/state", AskState, LogState),
    JsonCall("GET", _OPERATION, AskOperation, OperationStory, (E.OPERATION_NOT_FOUND,)),
    JsonCall(
        "POST", f"{_OPERATION}/undo", RevertOperation, PatchResult,
        (
            E.UNAUTHORIZED, E.PATH_PROTECTED, E.OPERATION_NOT_FOUND, E.WORKSPACE_NOT_FOUND, E.REVERT_CONFLICT,
            E.OPERATION_KEY_CONFLICT, E.WORKSPACE_BUSY, E.RESOURCE_QUEUE_FULL,
        ),
    ),
    JsonCall("GET", "/operator/processes", ListProcesses, ProcessList, listed="processes"),
    JsonCall("GET", _PROCESS, AskProcess, ProcessReport, (E.PROCESS_NOT_FOUND,)),
    JsonCall("GET", f"{_PROCESS}/output", ReadProcess, OutputRead, (E.PROCESS_NOT_FOUND, E.OUTPUT_LIMIT, E.TIMEOUT)),
    JsonCall("POST", f"{_PROCESS}/terminate", TerminateProcess, Done, (E.PROCESS_NOT_FOUND,)),
    JsonCall("GET", "/operator/verification", AskVerification, Verification),
    JsonCall("POST", "/operator/verification", Verify, Verification),
)


def operator_routes(codespace: Codespace, audit: Audit) -> list[BaseRoute]:
    """Return the routes of the operator's API."""
    streams = EventStreams(codespace.world.log)
    return [
        *routes_of(JsonSide(codespace, answerers=answerers_of(audit)), OPERATOR_CALLS),
        Route(EVENTS_PATH, streams.answer, methods=["GET"]),
    ]


def answerers_of(audit: Audit) -> Mapping[type[Command], Answerer]:
    """Return who answers what the door doesn't."""
    return {
        AskTimeline: audit.timeline,
        AskState: audit.state,
        AskOperation: audit.operation,
        AskVerification: audit.verification,
        Verify: audit.verify,
    }
