"""Printing: colours in a terminal, one plain line a thing where the output is piped, JSON where it is asked for.

What is printed may hold names that an agent chose, so control characters never reach a terminal.
"""

import json
import shlex
import sys
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import click
from pydantic import BaseModel

from codespace_es.vocabulary.visible_text import spelt_out

if TYPE_CHECKING:
    from rich.console import Console


def is_terminal() -> bool:
    """Return whether a person looks at stdout."""
    return sys.stdout.isatty()


def console() -> "Console":
    """Return a console on stdout; nothing in what is printed is taken as markup."""
    from rich.console import Console

    return Console(highlight=False, markup=False, emoji=False)


def clean(text: str) -> str:
    r"""Return `text` on one line: what a terminal would obey, or wouldn't draw, stands as `\xNN` and the like."""
    return spelt_out(text)


def clean_lines(text: str) -> list[str]:
    """Return the lines of `text`, each clean; tabs are kept as blanks."""
    return [clean(line.replace("\t", "    ")) for line in text.split("\n")]


def print_row(*cells: object) -> None:
    """Print one thing on one line, cells separated by tabs."""
    click.echo("\t".join(clean(str(cell)) for cell in cells))


def print_json(value: BaseModel | Mapping[str, Any] | list[Any], *, is_line: bool = False) -> None:
    """Print `value` as JSON; `is_line`: on one line, so that a stream of them can be read line by line."""
    plain = value.model_dump(mode="json", exclude_none=True) if isinstance(value, BaseModel) else value
    click.echo(json.dumps(plain, indent=None if is_line else 2))


def short_id(identifier: str) -> str:
    """Return an id short enough for a column: its kind and eight digits."""
    kind, dash, rest = identifier.partition("-")
    return f"{kind}-{rest[:8]}" if dash and len(rest) > 8 else identifier


def print_pairs(pairs: Iterable[tuple[str, object]]) -> None:
    """Print names and values, aligned in a terminal, tab-separated otherwise."""
    told = [(name, clean(str(value))) for name, value in pairs]
    if not is_terminal():
        for name, value in told:
            click.echo(f"{name}\t{value}")
        return
    from rich.table import Table

    table = Table.grid(padding=(0, 2))
    table.add_column(style="dim")
    table.add_column(overflow="fold")
    for name, value in told:
        table.add_row(name, value)
    console().print(table)


def as_shell_words(words: Iterable[str]) -> str:
    """Return `words` as one line that a POSIX shell takes apart again into the same."""
    return shlex.join(words)


def print_heading(text: str) -> None:
    """Print a line that begins a part."""
    line = " ".join(clean_lines(text))
    if is_terminal():
        console().print(f"\n{line}", style="bold")
    else:
        click.echo(f"\n# {line}")


def print_diff(text: str) -> None:
    """Print a unified diff, coloured in a terminal."""
    colours = {"+": "green", "-": "red", "@": "cyan"}
    for line in clean_lines(text.rstrip("\n")) if text else ():
        if is_terminal():
            console().print(line, style=colours.get(line[:1], ""))
        else:
            click.echo(line)
