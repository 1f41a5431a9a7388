"""Write docs/reference/cli.md from the commands themselves: `python docs/generate_cli_reference.py`.

A test compares the page with what this makes, so it can't drift.
"""

import inspect
import sys
from collections.abc import Iterator
from pathlib import Path

import click

REPOSITORY = Path(__file__).resolve().parents[1]
PAGE = REPOSITORY / "docs" / "reference" / "cli.md"

if __name__ == "__main__":
    sys.path[:0] = [str(REPOSITORY / "src"), str(REPOSITORY)]

from adapters.cli.main import COMMANDS, cli  # noqa: E402

_INTRODUCTION = """\
# Command line

<!-- Made by docs/generate_cli_reference.py from the code: change it there. -->

`codespace-es COMMAND [OPTIONS]`. `codespace-es --version` tells the version, `codespace-es COMMAND --help` the same as
this page.

In a terminal the output has colours and columns. Piped, it is plain: one thing a line, cells separated by tabs. With
`--json` it is JSON: one object a line for `log` and `replay --all`, one value for the others. Messages go to stderr.

| exit code | meaning |
| --- | --- |
| 0 | done |
| 1 | refused or failed; `verify` found damage, `compare` a difference, `doctor` something bad; `demo` went otherwise |
| 2 | wrong usage; it can't start, or the log can't be opened |

An option wins over its environment variable, that over the configuration file, that over the default; see
[configuration](../configuration.md).
"""


def page() -> str:
    """Return the text of the page."""
    context = click.Context(cli, info_name="codespace-es")
    parts = [_INTRODUCTION]
    for name in COMMANDS:
        command = cli.get_command(context, name)
        assert command is not None
        parts.append("\n".join(_section(name, command)))
        if isinstance(command, click.Group):
            for each in command.commands or command.list_commands(context):  # in their own order, which click sorts
                below = command.get_command(context, each)
                assert below is not None
                parts.append("\n".join(_section(f"{name} {each}", below)))
    return "\n".join(parts)


def _section(name: str, command: click.Command) -> Iterator[str]:
    arguments = [each for each in command.params if isinstance(each, click.Argument)]
    options = [each for each in command.params if isinstance(each, click.Option) and not each.hidden]
    usage = " ".join([name, *(each.make_metavar(click.Context(command)) for each in arguments), "[OPTIONS]"])
    yield f"## `codespace-es {usage}`\n"
    yield inspect.cleandoc(command.help or "") + "\n"
    if options:
        yield "| option | meaning |\n| --- | --- |"
        for option in options:
            yield f"| `{_form(option, command)}` | {_meaning(option)} |"
        yield ""


def _form(option: click.Option, command: click.Command) -> str:
    form = ", ".join(option.opts)
    return form if option.is_flag else f"{form} {option.make_metavar(click.Context(command))}".replace("|", "\\|")


def _meaning(option: click.Option) -> str:
    meaning = " ".join((option.help or "").replace("|", "\\|").split())
    return f"{meaning} Default: `{option.default}`." if option.show_default else meaning


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
