"""`/inbox`: people's side of steering as plain JSON, each call one command through the door.

It stands behind the agents' token. No call opens a work or touches a hold: what is written is text, never authority.
Source: contract B6.5.
"""

from collections.abc import Mapping
from types import MappingProxyType

from starlette.routing import Route

from adapters.http.json_calls import JsonCall, JsonSide, routes_of
from codespace_es.codespace import Codespace
from codespace_es.command_handlers.inbox import (
    CancelIntentCommand,
    EditIntentCommand,
    IntentList,
    ListIntents,
    ListWorks,
    LookAtWork,
    QueueIntentCommand,
    ReorderIntentsCommand,
    StopAnswer,
    StopWorkCommand,
    WorkDescription,
    WorkList,
    WriteIntent,
)
from codespace_es.command_handlers.steering import IntentAnswer
from codespace_es.vocabulary.errors import ERROR_SPECS, ErrorCode

_OWN_STATUSES: Mapping[ErrorCode, int] = MappingProxyType({
    ErrorCode.WORK_NOT_FOUND: 404,
    ErrorCode.INTENT_NOT_FOUND: 404,
    ErrorCode.INTENT_ALREADY_CLAIMED: 409,
    ErrorCode.INTENT_REVISION_CONFLICT: 409,
    ErrorCode.WORK_CLOSED: 409,
    ErrorCode.UNAUTHORIZED: 403,
})

STATUSES: Mapping[ErrorCode, int] = MappingProxyType({
    code: _OWN_STATUSES.get(code, spec.http_status if spec.http_status >= 500 else 400)
    for code, spec in ERROR_SPECS.items()
})
"""400 for every refusal that the inbox gives no status of its own, 5xx for what isn't a refusal."""

_WORK = ErrorCode.WORK_NOT_FOUND
_INTENT = ErrorCode.INTENT_NOT_FOUND
_CLAIMED = ErrorCode.INTENT_ALREADY_CLAIMED
_FIXED = ErrorCode.INTENT_NOT_EDITABLE
_STALE = ErrorCode.INTENT_REVISION_CONFLICT


def steering_calls(place: str) -> tuple[JsonCall, ...]:
    """Return the calls as they stand beneath `place`."""
    work, intent = f"{place}/works/{{work_id}}", f"{place}/intents/{{intent_id}}"
    return (
        JsonCall("GET", f"{place}/works", ListWorks, WorkList, listed="works"),
        JsonCall("GET", work, LookAtWork, WorkDescription, (_WORK,)),
        JsonCall("GET", f"{work}/intents", ListIntents, IntentList, (_WORK,), listed="intents"),
        JsonCall("POST", f"{work}/intents", WriteIntent, IntentAnswer, (_WORK,), status=201),
        JsonCall("POST", f"{work}/reorder", ReorderIntentsCommand, IntentList, (_WORK,), listed="intents"),
        JsonCall("POST", f"{work}/stop", StopWorkCommand, StopAnswer, (_WORK,)),
        JsonCall("PATCH", intent, EditIntentCommand, IntentAnswer, (_INTENT, _CLAIMED, _FIXED, _STALE)),
        JsonCall("POST", f"{intent}/queue", QueueIntentCommand, IntentAnswer, (_INTENT, _FIXED, _STALE)),
        JsonCall("POST", f"{intent}/cancel", CancelIntentCommand, IntentAnswer, (_INTENT, _CLAIMED, _FIXED)),
    )


INBOX_CALLS = steering_calls("/inbox")


def inbox_routes(codespace: Codespace) -> list[Route]:
    """Return the routes of the inbox."""
    return routes_of(JsonSide(codespace, statuses=STATUSES), INBOX_CALLS)
