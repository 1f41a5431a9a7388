"""`show ID`: one thing's whole story, with what it links to."""

import click

from adapters.cli.entries import print_entries
from adapters.cli.hold_facts import facts_of_hold
from adapters.cli.living import story_as_it_is
from adapters.cli.options import as_json, settings_of_log
from adapters.cli.output import as_shell_words, clean_lines, print_diff, print_heading, print_json, print_pairs
from adapters.cli.processes import ending
from adapters.cli.reading import open_log, whole_id
from adapters.log.reader import LogReader
from adapters.settings.load import Settings
from replay.process_story import ProcessStory
from replay.story import NothingRecordedError, Story, tell
from replay.work_story import IntentStory


@click.command()
@click.argument("identifier", metavar="ID")
@as_json
@settings_of_log
def show(settings: Settings, *, identifier: str, is_json: bool) -> int:
    """Tell the whole story of one id.

    ID is an operation (op-...), a command (proc-...), a hold (appr-...), a work (work-...), an instruction (fb-...), a
    pending action (act-...), a server (inst-...), a workspace's key (wsp-...), a claim (claim-...), `store`, or an
    operation key that a client chose. The beginning of an id will do where no other begins like it.
    """
    with open_log(settings) as source:
        try:
            story = _told(source, identifier)
        except NothingRecordedError as error:
            click.echo(f"codespace-es: {error}", err=True)
            return 1
        if story.process is not None:
            story = story.model_copy(update={"process": story_as_it_is(settings, source, story.process)})
    if is_json:
        print_json(story)
    else:
        _print(story)
    return 0


def _told(source: LogReader, identifier: str) -> Story:
    try:
        return tell(source, identifier)
    except NothingRecordedError:
        whole = whole_id(source, identifier)
        if whole == identifier:
            raise
        return tell(source, whole)


def _print(story: Story) -> None:
    print_pairs(_facts(story))
    if story.process:
        _print_output(story.process)
    print_heading("Events")
    print_entries(story.events)
    if more := story.event_count - len(story.events):
        click.echo(f"{more:,} events between the first and the last {len(story.events) // 2} aren't told.")
    if story.related:
        print_heading("In the same calls")
        print_entries(story.related)
    if story.begun:
        print_heading("What was begun through it")
        print_entries(story.begun)
    if story.work is not None and story.work.done:
        print_heading("What was begun for it")
        print_entries(story.work.done)
    for file in story.files:
        print_heading(f"{file.planned.kind} {file.planned.path}")
        print_diff(file.diff or "")
        if file.note:
            click.echo(file.note)


def _print_output(process: ProcessStory) -> None:
    for heading, text in (("The beginning of its output", process.output_head), ("Output", process.output_tail)):
        if text is not None:
            print_heading(heading)
            for line in clean_lines(text.removesuffix("\n").replace("\r\n", "\n")):
                click.echo(line)
    if process.note:
        click.echo(process.note)


def _process_facts(process: ProcessStory) -> list[tuple[str, object]]:
    facts: list[tuple[str, object]] = []
    if process.argv is not None:
        facts.append(("command", as_shell_words(process.argv)))
    if process.refusal is not None:
        facts.append(("never started", process.refusal))
    report = process.report
    if report is not None:
        facts += [("status", ending(report)), ("workspace", report.workspace_id), ("output", report.output_total)]
        if report.duration_ms is not None:
            facts.append(("milliseconds", report.duration_ms))
        if report.descendants_killed is not None:
            facts.append(("ended with it", report.descendants_killed))
    return facts


def _facts(story: Story) -> list[tuple[str, object]]:
    facts: list[tuple[str, object]] = [("id", story.id), ("kind", story.kind)]
    if story.process is not None:
        facts += _process_facts(story.process)
    if story.approval is not None:
        facts += facts_of_hold(story.approval)
    report = story.report
    if report is not None:
        facts += [("status", report.status), ("source", report.source), ("workspace", report.workspace_id)]
        optional = {
            "key": report.operation_key,
            "claim": story.claim_id,
            "work": report.work_id,
            "held as": story.details[0].get("approval_id"),
            "action": story.details[0].get("action_id"),
            "undoes": ", ".join((report.reverts or "", *(report.also_reverts or ()))) or None,
            "undone by": report.reverted_by,
            "error": f"{report.error.code}: {report.error.message}" if report.error else None,
        }
        facts += [(name, value) for name, value in optional.items() if value is not None]
    if story.instance is not None:
        facts += [("server", story.instance.instance_id), ("began", story.instance.summary)]
    if story.begun_count is not None:
        facts.append(("begun", story.begun_count))
    if story.intent is not None:
        facts += _intent_facts(story.intent)
    if story.work is not None:
        work = story.work
        facts += [("workspace", work.workspace_id), ("state", work.state), ("title", work.title or "")]
        facts += [(f"instruction, {each.state}", f"{each.intent_id}  {each.text or ''}") for each in work.intents]
        facts.append(("begun", work.done_count))
    if story.kind in ("workspace", "claim", "store"):
        facts += [(name, value) for name, value in story.details[-1].items() if isinstance(value, str | int)]
    return facts


def _intent_facts(intent: IntentStory) -> list[tuple[str, object]]:
    told = [("state", intent.state), ("sort", intent.kind), ("work", intent.work_id), ("text", intent.text)]
    return [(name, value) for name, value in told if value is not None]
