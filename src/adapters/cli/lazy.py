"""A group of commands that imports a command's module only when that command runs: `serve` has to start fast."""

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module

import click


@dataclass(frozen=True, slots=True)
class LazyCommand:
    """Where a command is, and what the group's help says of it."""

    place: str
    """`module:attribute`."""
    summary: str


class LazyGroup(click.Group):
    """A group over a table of commands."""

    def __init__(self, *, table: Mapping[str, LazyCommand], name: str, help: str) -> None:  # noqa: A002 - click's name
        super().__init__(name=name, help=help)
        self._table = table

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """Return the names in the order of the table."""
        return list(self._table)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 - click's signature
        """Return a command, importing its module; None if there is none of this name."""
        lazy = self._table.get(cmd_name)
        if lazy is None:
            return None
        module, _, attribute = lazy.place.partition(":")
        command = getattr(import_module(module), attribute)
        assert isinstance(command, click.Command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command that is meant. Raises UsageError, with the nearest name if one is near."""
        if args[0] not in self._table and not args[0].startswith("-"):
            from difflib import get_close_matches

            for near in get_close_matches(args[0], self._table, n=1):
                ctx.fail(f"No such command {args[0]!r}. Did you mean {near!r}?")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """Write the summaries of the table; no command is imported for it."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, lazy.summary) for name, lazy in self._table.items()])
