"""The parts of a report that are about people: what they asked for and decided, and what still waits for them."""

from collections.abc import Iterator, Sequence

from replay.markup import chip, heading, moment, shown, shown_lines
from replay.report import Gathered, ToldApproval
from replay.work_story import IntentStory

_LOOKS = {
    "granted": "good", "consumed": "good", "denied": "bad", "expired": "odd", "pending": "odd",
    "done": "good", "blocked": "bad", "claimed": "odd", "queued": "odd", "applied": "good", "failed": "bad",
    "orphaned": "bad",
}
_DECIDERS = {
    "cli": "the operator, on the command line", "web": "the operator, in the console", "http": "somebody over HTTP",
    "mcp": "the client itself", "elicitation": "the client's user", "timer": "nobody in time",
}
"""Who decided, by the channel that was spoken over."""


def works(told: Gathered) -> Iterator[str]:
    """Yield what people asked for, work by work, and what came of it."""
    if not told.works and not told.loose_intents:
        return
    yield from heading("Works", "what people asked for, and what came of it", told.counts["work"], len(told.works))
    for work in told.works:
        yield (
            f'<details open id="{shown(work.work_id)}"><summary>{chip(work.state)}'
            f'<span class="grow">{shown(work.title or work.work_id)}</span>'
            f'<span class="quiet">{shown(work.workspace_id)}</span></summary><div>'
        )
        yield from _intents(work.intents)
        if more := work.intent_count - len(work.intents):
            yield f'<p class="quiet">{more:,} more, which are over, are not told here.</p>'
        yield "</div></details>"
    if told.loose_intents:
        yield "<details open><summary><span class=\"grow\">Instructions that belong to no work</span></summary><div>"
        yield from _intents(told.loose_intents)
        yield "</div></details>"


def _intents(intents: Sequence[IntentStory]) -> Iterator[str]:
    if not intents:
        yield '<p class="quiet">No instruction was written for it.</p>'
        return
    yield "<table>"
    for each in intents:
        text = "<br>".join(shown_lines(each.text)) if each.text else "Its text is not stored."
        yield (
            f'<tr id="{shown(each.intent_id)}"><td>{chip(each.state, _LOOKS.get(each.state, ""))}</td>'
            f'<td>{text}<br><span class="quiet mono">{shown(each.kind)} &middot; {shown(each.intent_id)}</span></td>'
            "</tr>"
        )
    yield "</table>"


def approvals(told: Gathered) -> Iterator[str]:
    """Yield what was held, and who decided."""
    if not told.counts["approval"]:
        return
    yield from heading(
        "Approvals", "what had to be asked, and who decided", told.counts["approval"], len(told.approvals)
    )
    yield '<div class="sheet scroll"><table><tr><th>state</th><th>what</th><th>decided by</th><th>led to</th></tr>'
    for each in told.approvals:
        yield _approval(each)
    yield "</table></div>"


def _approval(each: ToldApproval) -> str:
    report = each.report
    reason = f'<br><span class="quiet">{shown(report.reason)}</span>' if report.reason else ""
    effect = f'<a href="#{shown(report.effect_id)}">{shown(report.effect_id)}</a>' if report.effect_id else ""
    decided = _DECIDERS.get(report.decided_by, report.decided_by) if report.decided_by else "nobody"
    return (
        f'<tr id="{shown(report.approval_id)}"><td>{chip(report.state, _LOOKS.get(report.state, ""))}</td>'
        f'<td>{shown(report.title)}<br><span class="quiet">{shown(report.tool)}, {moment(each.began.recorded_at)}, '
        f"asked by {shown(report.requested_by or 'unnamed')}</span></td><td>{shown(decided)}{reason}</td>"
        f'<td class="mono">{effect}</td></tr>'
    )


def actions(told: Gathered) -> Iterator[str]:
    """Yield the previews that waited to be applied or discarded."""
    if not told.actions:
        return
    yield from heading(
        "Previews", "what tools proposed, and what was made of it", told.counts["action"], len(told.actions)
    )
    yield '<div class="sheet scroll"><table>'
    for each in told.actions.values():
        outcome = each.outcome or "pending"
        yield (
            f'<tr id="{shown(each.action_id)}"><td>{chip(outcome, _LOOKS.get(outcome, ""))}</td><td>{shown(each.label)}'
            f'<br><span class="quiet">{shown(each.tool)}, {moment(each.began.recorded_at)}</span></td></tr>'
        )
    yield "</table></div>"


def still_open(told: Gathered) -> list[tuple[str, str, str]]:
    """Return kind, id and purpose of all that is told and had not ended, in the order in which it began."""
    found = [
        *((each.began.position, "operation", each.report.operation_id, ", ".join(each.report.files or ()))
          for each in told.operations if each.report.finished_at is None),
        *((each.began.position, "command", each.process_id, each.command_line)
          for each in told.commands if each.is_success is None),
        *((each.began.position, "hold", each.report.approval_id, each.report.title)
          for each in told.approvals if each.report.state not in ("consumed", "denied", "expired")),
        *((each.began.position, "preview", each.action_id, each.label)
          for each in told.actions.values() if each.outcome is None),
    ]
    intents = [each for work in told.works for each in work.intents] + told.loose_intents
    waiting = [
        ("instruction", each.intent_id, each.text or "") for each in intents if each.state in ("queued", "claimed")
    ]
    return [row[1:] for row in sorted(found)] + waiting


def open_things(told: Gathered) -> Iterator[str]:
    """Yield what had not ended at the end of the range."""
    found = still_open(told)
    if not found:
        return
    yield from heading("Still open", "begun or asked for, and not over", len(found), len(found))
    yield '<div class="sheet scroll"><table>'
    for kind, thing, purpose in found:
        yield (
            f'<tr><td>{chip(kind, "odd")}</td><td>{shown(purpose[:200])}<br><a class="mono" href="#{shown(thing)}">'
            f"{shown(thing)}</a></td></tr>"
        )
    yield "</table></div>"
