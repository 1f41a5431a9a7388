"""`inbox`: people write instructions for agents, let them have them, order them, stop them."""

import sys
from functools import partial
from typing import Any, get_args

import anyio
import click

from adapters.cli.inbox_reading import all_steering, find_intent, find_work, intents_of
from adapters.cli.options import as_json, settings_of_log
from adapters.cli.output import clean, console, is_terminal, print_json, print_pairs, print_row, short_id
from adapters.cli.reading import open_log
from adapters.settings.load import Settings
from codespace_es.aggregates.steering.events import Delivery, IntentKind
from codespace_es.command_handlers.inbox import (
    CancelIntentCommand,
    EditIntentCommand,
    IntentList,
    QueueIntentCommand,
    ReleaseIntentCommand,
    ReorderIntentsCommand,
    StopAnswer,
    StopWorkCommand,
    WriteIntent,
    project_work,
)
from codespace_es.command_handlers.steering import IntentAnswer
from codespace_es.vocabulary.answer import Answer, Command
from codespace_es.vocabulary.event import Caller
from codespace_es.vocabulary.identifiers import RequestId

_delivery = click.option(
    "--delivery", type=click.Choice(get_args(Delivery)),
    help="When an agent may claim it: at its next checkpoint, once it thinks that it is done, or in the next work.",
)
_revision = click.option(
    "--revision", type=click.IntRange(min=1), metavar="NUMBER",
    help="Only if it still has this revision. Without it: the present one.",
)


@click.group()
def inbox() -> None:
    """Steer agents: write what they should do next, and let them have it.

    An agent opens a work and claims at its checkpoints what people have queued. A draft is seen by no agent; a claimed
    intent is frozen; no two agents ever get the same one. It is text, never authority: it changes nothing of what a
    workspace allows. WORK and ID may be the beginning of an id; a TEXT of - is read from stdin.
    """


@inbox.command()
@click.option("--workspace", "workspace", metavar="ID", help="Only of the workspace of this name.")
@as_json
@settings_of_log
def works(settings: Settings, *, workspace: str | None, is_json: bool) -> None:
    """List the works, newest first in each workspace.

    Piped, each line has id, state, workspace, revision of the queue and title, separated by tabs.
    """
    with open_log(settings) as source:
        listed = [
            project_work(each) for steered in all_steering(source)
            for each in reversed(list(steered.state.works.values()))
            if workspace is None or each.workspace_id == workspace
        ]
    if is_json:
        print_json([each.to_wire() for each in listed])
        return
    if not listed and is_terminal():
        click.echo("No work was opened yet: an agent does that, by work_open.")
        return
    _print_table(
        ("id", "", "workspace", "queue", "title"),
        [(each.work_id, each.state, each.workspace_id, each.queue_revision, each.title or "") for each in listed],
    )


@inbox.command("list")
@click.argument("work", metavar="WORK")
@as_json
@settings_of_log
def list_all(settings: Settings, *, work: str, is_json: bool) -> None:
    """List the intents of a work, drafts included, and those of its workspace that belong to no work.

    Claimed ones first, then queued, drafts and the rest. Piped, each line has id, state, kind, delivery, position,
    revision and text, separated by tabs.
    """
    with open_log(settings) as source:
        listed = intents_of(source, *find_work(source, work))
    if is_json:
        print_json([each.to_wire() for each in listed])
        return
    _print_table(
        ("id", "", "kind", "delivery", "place", "rev.", "text"),
        [(each.intent_id, each.state, each.kind, each.delivery, each.position, each.revision, each.body or "")
         for each in listed],
    )


@inbox.command()
@click.argument("work", metavar="WORK")
@click.argument("text", metavar="TEXT")
@click.option("--kind", type=click.Choice(get_args(IntentKind)), default="follow_up", show_default=True,
              help="What sort of instruction.")
@_delivery
@click.option("--key", metavar="KEY", help="Yours: a repeat with it makes no second intent.")
@click.option("--queue", "is_queued", is_flag=True, help="Queue it at once.")
@as_json
@settings_of_log
def write(
    settings: Settings, *, work: str, text: str, kind: IntentKind, delivery: Delivery | None, key: str | None,
    is_queued: bool, is_json: bool,
) -> None:
    """Draft an instruction for a work; of a closed work it waits for the next one.

    Without --delivery an agent may claim it once it thinks that it is done.
    """
    with open_log(settings) as source:
        work_id = find_work(source, work)[1].work_id
    drafted = WriteIntent(
        work_id=work_id, body=_text(text), kind=kind, delivery=delivery or "after_current_work", client_key=key
    )
    _print_intent(anyio.run(partial(_write, settings, drafted, is_queued=is_queued)), is_json=is_json)


@inbox.command()
@click.argument("identifier", metavar="ID")
@_revision
@as_json
@settings_of_log
def queue(settings: Settings, *, identifier: str, revision: int | None, is_json: bool) -> None:
    """Let agents have a draft."""
    with open_log(settings) as source:
        intent = find_intent(source, identifier)
    command = QueueIntentCommand(intent_id=intent.intent_id, revision=revision or intent.revision)
    _print_intent(_ask(settings, command), is_json=is_json)


@inbox.command()
@click.argument("identifier", metavar="ID")
@click.argument("text", metavar="TEXT")
@_delivery
@_revision
@as_json
@settings_of_log
def edit(
    settings: Settings, *, identifier: str, text: str, delivery: Delivery | None, revision: int | None, is_json: bool
) -> None:
    """Change an instruction that nobody has claimed."""
    with open_log(settings) as source:
        intent = find_intent(source, identifier)
    command = EditIntentCommand(
        intent_id=intent.intent_id, revision=revision or intent.revision, body=_text(text), delivery=delivery
    )
    _print_intent(_ask(settings, command), is_json=is_json)


@inbox.command()
@click.argument("identifier", metavar="ID")
@as_json
@settings_of_log
def cancel(settings: Settings, *, identifier: str, is_json: bool) -> None:
    """Take back an instruction that nobody has claimed."""
    with open_log(settings) as source:
        intent = find_intent(source, identifier)
    _print_intent(_ask(settings, CancelIntentCommand(intent_id=intent.intent_id)), is_json=is_json)


@inbox.command()
@click.argument("identifier", metavar="ID")
@as_json
@settings_of_log
def release(settings: Settings, *, identifier: str, is_json: bool) -> None:
    """Put a claimed instruction back in its place, such as one whose agent is gone."""
    with open_log(settings) as source:
        intent = find_intent(source, identifier)
    _print_intent(_ask(settings, ReleaseIntentCommand(intent_id=intent.intent_id)), is_json=is_json)


@inbox.command()
@click.argument("work", metavar="WORK")
@click.argument("identifiers", metavar="ID...", nargs=-1, required=True)
@as_json
@settings_of_log
def reorder(settings: Settings, *, work: str, identifiers: tuple[str, ...], is_json: bool) -> None:
    """Give the queue of a work another order: name exactly its queued intents."""
    with open_log(settings) as source:
        work_id = find_work(source, work)[1].work_id
        order = tuple(find_intent(source, each).intent_id for each in identifiers)
    listed = _ask(settings, ReorderIntentsCommand(work_id=work_id, intent_ids=order))
    assert isinstance(listed, IntentList)
    queued = [each for each in listed.intents if each.state == "queued" and each.work_id == work_id]
    if is_json:
        print_json([each.to_wire() for each in queued])
    else:
        _print_table(("place", "id", "text"), [(each.position, each.intent_id, each.body or "") for each in queued])


@inbox.command()
@click.argument("work", metavar="WORK")
@click.option("--reason", metavar="TEXT", help="What the agent is told.")
@as_json
@settings_of_log
def stop(settings: Settings, *, work: str, reason: str | None, is_json: bool) -> None:
    """Leave a notice that a work is to stop.

    Commands that run in its workspace belong to the servers that started them and aren't ended from here; how many
    there are is told.
    """
    with open_log(settings) as source:
        work_id = find_work(source, work)[1].work_id
    stopped = _ask(settings, StopWorkCommand(work_id=work_id, reason=reason))
    assert isinstance(stopped, StopAnswer)
    if is_json:
        print_json(stopped.to_wire())
        return
    print_pairs([("notice", stopped.intent.intent_id), ("state", stopped.intent.state),
                 ("still running", stopped.elsewhere)])
    if stopped.elsewhere:
        click.echo("Only the servers that run those commands can end them: by terminate_process, or when they end.",
                   err=True)


async def _write(settings: Settings, drafted: WriteIntent, *, is_queued: bool) -> Answer:
    """Write and, if asked for, queue; of a repeat the intent that is there is told as it is."""
    from adapters.bootstrap import open_codespace

    async with open_codespace(settings, transport="cli") as opened:
        caller = Caller("cli", RequestId(f"req-{opened.world.ids.uuid()}"), "codespace-es inbox")
        intent = await opened.codespace.handle(drafted, caller)
        assert isinstance(intent, IntentAnswer)
        if not is_queued or intent.state != "draft":
            return intent
        command = QueueIntentCommand(intent_id=intent.intent_id, revision=intent.revision)
        return await opened.codespace.handle(command, caller)


def _ask(settings: Settings, command: Command) -> Answer:
    """Return the door's answer to an operator at the command line."""

    async def ask() -> Answer:
        from adapters.bootstrap import open_codespace

        async with open_codespace(settings, transport="cli") as opened:
            caller = Caller("cli", RequestId(f"req-{opened.world.ids.uuid()}"), "codespace-es inbox")
            return await opened.codespace.handle(command, caller)

    return anyio.run(ask)


def _text(argument: str) -> str:
    """Return what is to be written; of what is read the last line's end is no part."""
    return sys.stdin.read().removesuffix("\n") if argument == "-" else argument


def _print_intent(answer: Answer, *, is_json: bool) -> None:
    assert isinstance(answer, IntentAnswer)
    if is_json:
        print_json(answer.to_wire())
    else:
        print_pairs([
            ("intent", answer.intent_id), ("state", answer.state), ("work", answer.work_id or "the next one"),
            ("delivery", answer.delivery), ("position", answer.position), ("revision", answer.revision),
        ])


def _print_table(titles: tuple[str, ...], rows: list[tuple[Any, ...]]) -> None:
    """Print one thing a row: aligned with short ids in a terminal, tab-separated and whole otherwise."""
    if not is_terminal():
        for row in rows:
            print_row(*row)
        return
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="dim")
    for title in titles:
        table.add_column(title, overflow="fold")
    for row in rows:
        table.add_row(*(short_id(clean(str(each))) if title == "id" else clean(str(each))
                        for title, each in zip(titles, row, strict=True)))
    console().print(table)
