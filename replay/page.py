"""A report as one HTML page that stands by itself: no script, no request to anywhere, readable on paper."""

from collections import Counter
from collections.abc import Iterator

from codespace_es.vocabulary.event import ABSENT
from replay.markup import chip, diff, heading, moment, pairs, shown, shown_lines
from replay.page_people import actions, approvals, open_things, still_open, works
from replay.page_style import STYLE
from replay.report import Gathered, ToldCommand, ToldOperation

_LOOKS = {
    "applied": "good", "checked": "link", "rejected": "odd", "failed_rolled_back": "bad", "failed_partial": "bad",
    "unknown": "bad",
}
_COMMAND_CHIPS = {True: ("done", "good"), False: ("no success", "bad"), None: ("runs", "odd")}
_FILES_OPEN_MAX = 10
"""So many files are shown with their diffs open."""

_HEAD = (
    '<!doctype html><html lang="en"><head><meta charset="utf-8">'
    '<meta name="viewport" content="width=device-width, initial-scale=1">'
    "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">"
    '<meta name="color-scheme" content="light dark"><meta name="referrer" content="no-referrer">'
)


def page(told: Gathered, *, made_at: str, software: str) -> Iterator[str]:
    """Yield the parts of the page, in order."""
    title = _title(told)
    yield f"{_HEAD}<title>{shown(title)}</title><style>{STYLE}</style></head><body><main>"
    yield f"<h1>{shown(title)}</h1>{_subtitle(told)}{_verdict(told)}{_cards(told)}"
    done = (_files, _operations, _commands, approvals, actions, _refusals)
    for part in (works, *done, open_things, _timeline, _verification):
        yield from part(told)
    yield (
        f"<footer>Made at {shown(made_at)} by {shown(software)} from the event log {shown(told.store_id)}, positions "
        f"{told.begin + 1} to {told.end}. The log alone is the proof: <code>codespace-es verify</code> checks it."
        "</footer></main></body></html>\n"
    )


def _title(told: Gathered) -> str:
    if told.session is None:
        return f"What happened, events {told.begin + 1:,} to {told.end:,}"
    return f"What happened in session {told.session}"


def _subtitle(told: Gathered) -> str:
    who = ", ".join(told.clients) or "nobody by name"
    return (
        f'<p class="quiet">{moment(told.first_at)} to {moment(told.last_at)} &middot; asked by {shown(who)}</p>'
        + "".join(f'<p class="quiet">{shown(server)}</p>' for server in told.servers[:20])
    )


def _verdict(told: Gathered) -> str:
    report = told.verification
    if report.is_ok:
        return (
            '<div class="verdict"><span class="sign">&#10003;</span><div><strong>The log is whole and unchanged'
            f"</strong><p>All {report.events:,} events follow from each other, every stream tells a possible story, "
            f"and {report.bodies:,} stored contents are what they were.</p></div></div>"
        )
    return (
        '<div class="verdict bad"><span class="sign">!</span><div><strong>The log is damaged</strong>'
        f"<p>{len(report.findings)} laws don't hold, the first at position {report.findings[0].position}. What is told "
        'below may be incomplete or untrue: see <a href="#verification">verification</a>.</p></div></div>'
    )


def _cards(told: Gathered) -> str:
    ended = Counter(each.report.status for each in told.operations)
    failed = sum(ended[status] for status in ("failed_rolled_back", "failed_partial", "unknown"))
    undone = sum(each.report.reverted_by is not None for each in told.operations)
    lost = sum(each.is_success is False for each in told.commands)
    cards = [
        (len(told.files), "files changed", ""),
        (ended["applied"], "patches applied", "good"),
        (undone, "undone", "odd" if undone else ""),
        (ended["rejected"] + sum(told.refusals.values()), "requests refused", "odd" if ended["rejected"] else ""),
        (failed, "patches failed", "bad" if failed else ""),
        (told.counts["command"], "commands" + (f", {lost} without success" if lost else ""), "bad" if lost else ""),
        (told.counts["approval"], "approvals asked", ""),
        (len(still_open(told)), "still open", "odd" if still_open(told) else ""),
    ]
    return '<div class="cards">' + "".join(
        f'<div class="card {look}"><b>{count:,}</b><span>{shown(name)}</span></div>' for count, name, look in cards
    ) + "</div>"


def _files(told: Gathered) -> Iterator[str]:
    yield f"<h2>Files <small>what changed from the beginning to the end, {len(told.files):,}</small></h2>"
    if not told.files:
        yield '<p class="quiet">No file is other than it was.</p>'
        return
    for number, file in enumerate(told.files):
        kind = "added" if file.before == ABSENT else "deleted" if file.after == ABSENT else "changed"
        yield (
            f'<details{" open" if number < _FILES_OPEN_MAX else ""}><summary>{chip(kind)}'
            f'<span class="grow mono">{shown(file.path)}</span><span class="quiet">{shown(file.workspace_id)}</span>'
            f"<span>{_lines(file.summary)}</span></summary><div>"
        )
        by = " ".join(f'<a href="#{shown(each)}">{shown(each[:11])}</a>' for each in file.operations[:20])
        yield f'<p class="quiet mono">{by}</p>' + (diff(file.diff) if file.diff else "")
        yield from (f'<p class="quiet">{shown(note)}</p>' for note in file.notes)
        yield "</div></details>"


def _lines(summary: str | None) -> str:
    added, _, removed = (summary or "").partition(" ")
    return f'<span class="plus">{shown(added)}</span> <span class="minus">{shown(removed)}</span>'


def _operations(told: Gathered) -> Iterator[str]:
    yield from heading("Operations", "every patch and undo that was asked for", told.counts["operation"],
                        len(told.operations))
    for each in told.operations:
        yield from _operation(each)


def _operation(each: ToldOperation) -> Iterator[str]:
    report = each.report
    paths = ", ".join(report.files or ()) or (report.error.message if report.error else "nothing planned")
    purpose = "undo of " if report.reverts else ""
    undone = chip("undone", "odd") if report.reverted_by else ""
    is_bad = _LOOKS.get(report.status) == "bad"
    yield (
        f'<details id="{shown(report.operation_id)}"{" open" if is_bad else ""}><summary>'
        f'{chip(report.status, _LOOKS.get(report.status, ""))}{undone}'
        f'<span class="grow">{shown(purpose + paths[:200])}</span>'
        f'<span class="quiet">{moment(each.began.recorded_at)}</span></summary><div>'
    )
    facts: list[tuple[str, object]] = [
        ("operation", report.operation_id), ("asked by", f"{each.began.client or 'unnamed'} over {each.began.channel}"),
        ("tool", report.source), ("workspace", report.workspace_id),
    ]
    optional = {
        "key": report.operation_key, "work": report.work_id, "held as": each.approval_id,
        "undoes": ", ".join((report.reverts or "", *(report.also_reverts or ()))) or None,
        "undone by": report.reverted_by,
        "error": f"{report.error.code}: {report.error.message}" if report.error else None,
    }
    facts += [(name, value) for name, value in optional.items() if value is not None]
    facts += [(f"found at {finding.path}", finding.found) for finding in report.findings or ()]
    yield pairs(facts)
    for file in each.files:
        yield f'<div class="path"><code>{shown(file.planned.path)}</code>{chip(file.planned.kind)}</div>'
        if file.diff:
            yield diff(file.diff)
        if file.note:
            yield f'<p class="quiet">{shown(file.note)}</p>'
    yield "</div></details>"


def _commands(told: Gathered) -> Iterator[str]:
    if told.counts["command"]:
        yield from heading("Commands", "every program that was run", told.counts["command"], len(told.commands))
        for each in told.commands:
            yield from _command(each)


def _command(each: ToldCommand) -> Iterator[str]:
    yield (
        f'<details id="{shown(each.process_id)}"><summary>'
        f"{chip(*_COMMAND_CHIPS[each.is_success])}"
        f'<span class="grow mono">{shown(each.command_line)}</span>'
        f'<span class="quiet">{moment(each.began.recorded_at)}</span></summary><div>'
    )
    yield pairs([
        ("process", each.process_id), ("asked by", f"{each.began.client or 'unnamed'} over {each.began.channel}"),
        ("ended", each.ending), ("confined", each.confinement),
    ])
    if each.output is not None:
        yield '<pre class="output">' + "\n".join(shown_lines(each.output.rstrip("\n"))) + "</pre>"
    else:
        yield '<p class="quiet">No output is stored.</p>'
    yield "</div></details>"


def _refusals(told: Gathered) -> Iterator[str]:
    if told.refusals:
        yield "<h2>Refused calls <small>before anything began</small></h2><div class=\"sheet\"><table>"
        for (tool, code), count in told.refusals.most_common():
            yield (
                f'<tr><td class="mono">{shown(tool)}</td><td>{chip(code, "odd")}</td>'
                f'<td class="number">{count:,}</td></tr>'
            )
        yield "</table></div>"


def _timeline(told: Gathered) -> Iterator[str]:
    yield from heading("Timeline", "every event, in order", told.entry_count, len(told.entries))
    yield '<div class="sheet scroll"><table>'
    for entry in told.entries:
        yield (
            f'<tr id="event-{entry.position}"><td class="number">{entry.position}</td>'
            f'<td class="when">{entry.recorded_at:%H:%M:%S}</td><td>{shown(entry.summary)}<br>'
            f'<span class="quiet mono">{shown(entry.topic)} &middot; {shown(entry.stream_id)} &middot; '
            f"{shown(entry.channel)}</span></td></tr>"
        )
    yield "</table></div>"


def _verification(told: Gathered) -> Iterator[str]:
    report = told.verification
    yield '<h2 id="verification">Verification <small>of the whole log, when this page was made</small></h2>'
    for finding in report.findings:
        yield (
            f'<div class="verdict bad"><span class="sign">!</span><div><strong>Law {shown(finding.law)}, position '
            f"{finding.position}</strong><p>{shown(finding.problem)}</p><p>{shown(finding.meaning)} {finding.count} "
            "in all.</p></div></div>"
        )
    yield pairs([
        ("verdict", "whole and unchanged" if report.is_ok else "damaged"), ("events", f"{report.events:,}"),
        ("contents", f"{report.bodies:,}, {report.body_bytes:,} bytes"), ("still open", report.open_items),
        ("head", f"{report.head_position}:{report.head_hash}"),
    ])
    yield (
        '<p class="quiet">Whoever has the log can compare: <code>codespace-es verify --head '
        f"{report.head_position}:{shown(report.head_hash)}</code></p>"
    )
