"""`replay`: the log as of a moment, whole, one thing of it, or step by step."""

import sys

import click

from adapters.cli.entries import moment, print_entries
from adapters.cli.keys import keyboard
from adapters.cli.moments import moment_in
from adapters.cli.options import as_json, settings_of_log
from adapters.cli.output import clean, console, is_terminal, print_json, print_pairs, print_row, short_id
from adapters.cli.reading import open_log
from adapters.cli.stepping import KEYS_TOLD, step
from adapters.cli.watching import watched
from adapters.log.reader import LogReader
from adapters.settings.load import Settings
from replay.state_at import AggregateState, LogState, aggregate_at, aggregates_at, state_at
from replay.stepping import Frame, Stepper


@click.command()
@click.argument("identifier", metavar="[ID]", required=False)
@click.option("--at", "at", default="head", metavar="MOMENT",
              help="A position, a time (2026-01-31T12:00:00Z), an id, ID@VERSION or an operation key. Without it: now.")
@click.option("--all", "is_all", is_flag=True, help="List every aggregate as it was; with --json one object a line.")
@click.option("--step", "is_stepping", is_flag=True, help="Step through the log with the arrow keys, in a terminal.")
@as_json
@settings_of_log
def replay(
    settings: Settings, *, identifier: str | None, at: str, is_all: bool, is_stepping: bool, is_json: bool
) -> int:
    """Tell what the log said at a moment, or step through it.

    What was recorded at the moment is part of it; position 0 is before everything. With ID only that stream is told,
    folded to the moment. --step needs a terminal; piped, it prints the one moment. Exit codes: 0 told; 1 ID wasn't
    there yet; 2 there is no such moment.
    """
    with open_log(settings) as source:
        position = moment_in(source, at)
        if identifier is not None:
            return _tell_one(source, identifier, position, is_json=is_json)
        if is_all:
            for aggregate in aggregates_at(source, position):
                _print_row(aggregate, is_json=is_json)
        elif is_stepping:
            _step(source, position, is_json=is_json)
        else:
            with watched(source) as log:
                state = state_at(log, position)
            if is_json:
                print_json(state)
            else:
                _print_state(state)
    return 0


def _tell_one(source: LogReader, identifier: str, position: int, *, is_json: bool) -> int:
    aggregate = aggregate_at(source, identifier, position)
    if aggregate is None:
        click.echo(f"codespace-es: At position {position} the log had nothing of {clean(identifier)}.", err=True)
        return 1
    if is_json:
        print_json(aggregate)
    else:
        pairs: list[tuple[str, object]] = [
            ("id", aggregate.stream_id), ("kind", aggregate.kind), ("state", aggregate.state),
            ("version", aggregate.version), ("position", aggregate.position),
        ]
        if aggregate.report is not None:
            pairs.append(("status", aggregate.report.status))
            pairs += [(change.kind, change.path) for change in aggregate.report.changes or ()]
        pairs += [(name, fact) for name, fact in aggregate.facts.items() if isinstance(fact, str | int)]
        print_pairs(pairs)
    return 0


def _print_row(aggregate: AggregateState, *, is_json: bool) -> None:
    if is_json:
        print_json(aggregate, is_line=True)
    else:
        status = aggregate.report.status if aggregate.report is not None else ""
        print_row(aggregate.stream_id, aggregate.kind, aggregate.state, aggregate.version, aggregate.position, status)


def _print_state(state: LogState) -> None:
    pairs: list[tuple[str, object]] = [("position", f"{state.position} of {state.head_position}")]
    if state.event is not None:
        pairs += [("recorded", moment(state.event)), ("event", f"{state.event.topic}: {state.event.summary}")]
    for kind, states in state.aggregates.items():
        pairs.append((kind, ", ".join(f"{count:,} {name}" for name, count in states.items())))
    if state.operations:
        pairs.append(("ended", ", ".join(f"{count:,} {status}" for status, count in state.operations.items())))
    pairs += [("workspace", f"{root} ({key})") for key, root in state.workspaces.items()]
    pairs += [("open", f"{each.kind} {each.stream_id}, since position {each.position}") for each in state.open]
    print_pairs(pairs)


def _step(source: LogReader, position: int, *, is_json: bool) -> None:
    """Step with the keys of a terminal; elsewhere print the one moment."""
    stepper = Stepper(source)
    if is_json:
        print_json(stepper.frame(position))
    elif not (is_terminal() and sys.stdin.isatty()):
        _print_frame(stepper.frame(position))
    else:
        def show(wanted: int) -> int:
            frame = stepper.frame(wanted)
            click.clear()
            _print_frame(frame)
            console().print(f"\n{KEYS_TOLD}", style="dim")
            return frame.position

        with keyboard(sys.stdin.fileno()) as next_key:
            step(position, show=show, next_key=next_key)


def _print_frame(frame: Frame) -> None:
    pairs: list[tuple[str, object]] = [("position", f"{frame.position} of {frame.head_position}")]
    if frame.event is not None:
        print_entries([frame.event])
        pairs.append(("state", f"{frame.before or 'nothing'} -> {frame.after or 'nothing'}"))
    pairs += [(name, value) for name, value in frame.recorded.items() if isinstance(value, str | int)]
    for row in frame.recorded.get("plan", ()):
        pairs.append((str(row["kind"]), row["path"]))
    pairs += [("open", short_id(stream_id) if is_terminal() else stream_id) for stream_id in frame.open]
    print_pairs(pairs)
