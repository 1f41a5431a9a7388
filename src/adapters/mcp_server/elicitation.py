"""Asking a client's user about a hold, in either era; the user's word is recorded with the channel `elicitation`.

1. A call is held. If the client can show a form and the operator lets it be asked, it is asked.
2. Until 2025-11-25 the server asks in the middle of the call, which waits; over HTTP, where it can't ask, it doesn't.
3. From 2026-07-28 on the call is answered by the question, and comes again with the user's answer and a sealed state.
4. Granted: the hold is decided and resumed, and the call answered by its own result; that of a custom tool, whose code
   isn't run on, by what was held in it. Denied: by APPROVAL_CONFLICT.
5. No answer, a late one, one that makes no sense or the end of the server leaves the hold pending: APPROVAL_REQUIRED,
   as without a form.

The state says which request was asked about and until when, under a MAC: a client can't answer one question as another.
Source: MCP 2025-11-25, client/elicitation; MCP 2026-07-28, multi-round-trip requests; decision 26.
"""

import hmac
from collections.abc import Awaitable, Callable
from typing import Any

from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp.shared.message import ServerMessageMetadata
from mcp_types import CallToolRequestParams, ElicitRequest, ElicitRequestFormParams, ElicitResult, InputRequiredResult
from pydantic import ValidationError

from adapters.mcp_server.tool import TellResumed
from codespace_es.codespace import Codespace
from codespace_es.command_handlers.consulting import ConsultHuman, Question
from codespace_es.command_handlers.deciding import ResolveHold
from codespace_es.command_handlers.resumable import RESUMABLE
from codespace_es.command_handlers.resuming import ResumeOperation, ResumeResult
from codespace_es.vocabulary.answer import Answer
from codespace_es.vocabulary.errors import CodespaceError, ErrorCode
from codespace_es.vocabulary.event import Caller
from codespace_es.vocabulary.fingerprint import canonical_json

_Context = ServerRequestContext[Any, Any]

_FIRST_VERSION_OF_ROUNDS = "2026-07-28"
_QUESTION = "approval"
_REASON_CHARACTERS_MAX = 500
_FORM: dict[str, Any] = {
    "type": "object",
    "properties": {
        "decision": {
            "type": "string",
            "title": "Decision",
            "enum": ["grant", "deny"],
            "description": "grant: it runs now, once. deny: it never runs.",
        },
        "reason": {
            "type": "string",
            "title": "Reason",
            "maxLength": _REASON_CHARACTERS_MAX,
            "description": "Kept, and shown to whoever asked.",
        },
    },
    "required": ["decision"],
}
"""The decision has to be picked: a client that agrees to every form by itself grants nothing by that."""


class People:
    """The users of the clients."""

    def __init__(self, codespace: Codespace) -> None:
        self._codespace = codespace

    async def involve(
        self,
        context: _Context,
        params: CallToolRequestParams,
        caller: Caller,
        call: Callable[[], Awaitable[Answer]],
        tell_resumed: TellResumed,
    ) -> Answer | InputRequiredResult | dict[str, Any]:
        """Return what `call` answers; if it is held and may be asked about: the question, or what came of the answer.

        Raises:
            CodespaceError: what `call` is refused with, APPROVAL_REQUIRED included; APPROVAL_CONFLICT if somebody else
                has decided meanwhile, or if the user denied it; what the resume of a granted hold is refused with.
        """
        asked_about = self._asked_about(context, params)
        if asked_about is not None:
            answers = params.input_responses or {}
            decision = _decision_of(answers.get(_QUESTION), asked_about)
            return await call() if decision is None else await self._act(decision, caller, tell_resumed)
        try:
            return await call()
        except CodespaceError as refusal:
            if refusal.code is not ErrorCode.APPROVAL_REQUIRED or params.input_responses or not _can_ask(context):
                raise
            approval_id = refusal.detail["approval_id"]
            question = await self._codespace.handle(ConsultHuman(approval_id=approval_id), caller)
            assert isinstance(question, Question)
            if question.text is None:
                raise
            if context.protocol_version >= _FIRST_VERSION_OF_ROUNDS:
                return self._as_result(question, approval_id, params)
            decision = None
            with self._codespace.until_closing():
                decision = await _ask(context, question, approval_id)
            if decision is None:
                raise
        return await self._act(decision, caller, tell_resumed)

    async def _act(self, decision: ResolveHold, caller: Caller, tell_resumed: TellResumed) -> dict[str, Any]:
        """Record the decision and do what follows from it."""
        person = Caller("elicitation", caller.request_id, caller.client)
        await self._codespace.handle(decision, person)
        resumed = await self._codespace.handle(ResumeOperation(approval_id=decision.approval_id), caller)
        assert isinstance(resumed, ResumeResult)
        wire = resumed.to_wire()
        held = next(tool for tool in RESUMABLE if tool in wire)
        return {**tell_resumed(held, wire[held]), **{key: wire[key] for key in ("pending_actions",) if key in wire}}

    def _as_result(self, question: Question, approval_id: str, params: CallToolRequestParams) -> InputRequiredResult:
        until = int(self._codespace.world.clock.now().timestamp()) + question.timeout_seconds
        return InputRequiredResult(
            input_requests={_QUESTION: _request(question)},
            request_state=f"{approval_id}.{until}.{self._seal(approval_id, until, params)}",
        )

    def _asked_about(self, context: _Context, params: CallToolRequestParams) -> str | None:
        """Return the hold about which the client was asked, if its answer is to this call's question and in time."""
        is_round = context.protocol_version >= _FIRST_VERSION_OF_ROUNDS
        if not is_round or not params.request_state or not params.input_responses:
            return None
        approval_id, _, rest = params.request_state.partition(".")
        until, _, seal = rest.partition(".")
        if not until.isascii() or not until.isdigit() or len(until) > 12:
            return None
        expected = self._seal(approval_id, int(until), params)
        is_ours = hmac.compare_digest(seal.encode(), expected.encode())
        is_late = self._codespace.world.clock.now().timestamp() > int(until)
        return approval_id if is_ours and not is_late else None

    def _seal(self, approval_id: str, until: int, params: CallToolRequestParams) -> str:
        sealed = canonical_json(["elicitation", approval_id, until, params.name, params.arguments or {}])
        return hmac.digest(self._codespace.world.input_key, sealed, "sha256").hex()


def _can_ask(context: _Context) -> bool:
    """Return whether this client can show a form here. Source: MCP 2025-11-25: `elicitation: {}` stands for forms."""
    capabilities = context.session.client_capabilities
    elicitation = capabilities.elicitation if capabilities is not None else None
    if elicitation is None or (elicitation.form is None and elicitation.url is not None):
        return False
    return context.protocol_version >= _FIRST_VERSION_OF_ROUNDS or context.session.can_send_request


async def _ask(context: _Context, question: Question, approval_id: str) -> ResolveHold | None:
    """Return what the user decides in time; None if there is no such answer, whatever the reason."""
    try:
        answer = await context.session.send_request(
            _request(question),
            ElicitResult,
            request_read_timeout_seconds=question.timeout_seconds,
            metadata=ServerMessageMetadata(related_request_id=context.request_id),
        )
    except (MCPError, ValidationError):  # it was too slow, can't after all, or answered what is no answer
        return None
    return _decision_of(answer, approval_id)


def _request(question: Question) -> ElicitRequest:
    assert question.text is not None, "somebody is to be asked"
    return ElicitRequest(params=ElicitRequestFormParams(message=question.text, requested_schema=_FORM))


def _decision_of(answer: object, approval_id: str) -> ResolveHold | None:
    """Return the decision in a client's answer; None if there is none in it."""
    if not isinstance(answer, ElicitResult) or answer.action == "cancel":
        return None
    given = answer.content or {}
    reason = given.get("reason")
    kept = str(reason)[:_REASON_CHARACTERS_MAX].encode(errors="replace").decode() if reason else None
    if answer.action == "decline":
        return ResolveHold(approval_id=approval_id, decision="deny", reason=kept or "The client's user declined.")
    match given.get("decision"):
        case "grant":
            return ResolveHold(approval_id=approval_id, decision="grant", reason=kept)
        case "deny":
            return ResolveHold(approval_id=approval_id, decision="deny", reason=kept)
        case _:
            return None
