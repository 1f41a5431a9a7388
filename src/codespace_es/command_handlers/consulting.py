"""Consulting: what a person is asked about a hold, where the operator lets a client's user be asked.

Only under `confirm`: there a client may grant anyway, and the form makes sure that its user is who does. Under
`operator` a client's form is the client's word, so nobody is asked by it. Source: decision 26; contract A4.
"""

import shlex

from pydantic import Field

from codespace_es.aggregates.approval import APPROVAL, Pending
from codespace_es.command_handlers.asking import AskApproval, ask_approval
from codespace_es.command_handlers.holding import find_workspace
from codespace_es.folding import fold
from codespace_es.ports.world import World
from codespace_es.projections.approval_status import ApprovalReport
from codespace_es.vocabulary import limits
from codespace_es.vocabulary.answer import Answer, Command
from codespace_es.vocabulary.event import Caller
from codespace_es.vocabulary.identifiers import ApprovalId
from codespace_es.vocabulary.visible_text import spelt_out


class ConsultHuman(Command):
    """Ask what to ask the client's user about a hold."""

    approval_id: str = Field(description="A hold.")


class Question(Answer):
    """What to ask, and how long an answer counts."""

    text: str | None = Field(default=None, description="The question; absent if nobody is to be asked.")
    timeout_seconds: int = Field(default=0, description="After it an answer is too late.")


async def consult_human(world: World, command: ConsultHuman, caller: Caller) -> Question:
    """Return what to ask about a hold; nothing unless it is pending and its workspace is set so.

    Raises:
        CodespaceError: APPROVAL_NOT_FOUND.
    """
    report = await ask_approval(world, AskApproval(approval_id=command.approval_id), caller)
    state = (await fold(world.log, APPROVAL, ApprovalId(command.approval_id))).state
    workspace = find_workspace(world, state.created.workspace_key) if isinstance(state, Pending) else None
    if workspace is None or workspace.approvals != "confirm" or workspace.elicitation_timeout_seconds == 0:
        return Question()
    return Question(text=_phrase(report), timeout_seconds=workspace.elicitation_timeout_seconds)


def _phrase(report: ApprovalReport) -> str:
    """Return the question, bounded, with nothing in it that a terminal would obey."""
    asked_by = f", asked for by {report.requested_by}" if report.requested_by else ""
    lines = [f"{report.tool} in workspace {report.workspace_id}{asked_by}: {report.title}", ""]
    if report.command is not None:
        lines += ["Command: " + shlex.join(report.command), ""]
    if report.diff:
        lines += [report.diff.rstrip("\n"), ""]
    if report.preview_error is not None:
        lines += [f"It can't be applied as things are: {report.preview_error['message']}", ""]
    text = spelt_out("\n".join(lines), kept="\n\t")
    if len(text) > limits.QUESTION_CHARACTERS_MAX or report.diff_truncated:
        shown = text[: limits.QUESTION_CHARACTERS_MAX]
        text = f"{shown}\n(cut here; `codespace-es approvals show {report.approval_id}` shows all)\n\n"
    return f"{text}\nLet it run? It is held as {report.approval_id}."
