"""The entry point: the table of commands, and what an error becomes: one line on stderr and an exit code.

Exit codes: 0 done; 1 refused, failed, or damage found; 2 wrong usage, or it can't start or open the log.
"""

import os
import sys
from collections.abc import Mapping
from io import StringIO, TextIOWrapper
from types import MappingProxyType

import click
from pydantic_core import ValidationError

from adapters.cli.lazy import LazyCommand, LazyGroup
from adapters.settings.problem import StartupError
from codespace_es.ports.log import InstanceClosedError, StoreUnavailableError, UnknownTopicError
from codespace_es.vocabulary.errors import CodespaceError
from codespace_es.vocabulary.visible_text import spelt_out

EXIT_FAILED = 1
EXIT_UNUSABLE = 2

COMMANDS: Mapping[str, LazyCommand] = MappingProxyType({
    "serve": LazyCommand("adapters.cli.serve:serve", "Serve workspaces over MCP, on stdio or over HTTP."),
    "demo": LazyCommand("adapters.cli.demo:demo", "Watch patches and commands go right, go wrong and survive a crash."),
    "init": LazyCommand("adapters.cli.init:init", "Write a configuration and print what MCP clients need."),
    "doctor": LazyCommand("adapters.cli.doctor:doctor", "Check this machine, the workspaces and what is open."),
    "workspaces": LazyCommand("adapters.cli.workspaces:workspaces", "List the configured workspaces."),
    "processes": LazyCommand("adapters.cli.processes:processes", "List the commands that run."),
    "log": LazyCommand("adapters.cli.log:log", "Read the event log, one sentence an event."),
    "show": LazyCommand("adapters.cli.show:show", "Tell the whole story of one id."),
    "verify": LazyCommand("adapters.cli.verify:verify", "Prove that the event log is whole and unchanged."),
    "replay": LazyCommand("adapters.cli.replay:replay", "Tell what the log said at a moment, or step through it."),
    "diff": LazyCommand("adapters.cli.diff:diff", "Tell what changed between two moments."),
    "files": LazyCommand("adapters.cli.files:files", "List the files that operations have touched."),
    "compare": LazyCommand("adapters.cli.compare:compare", "Decide again, with this version."),
    "export": LazyCommand("adapters.cli.export:export", "Write the event log to stdout, one JSON object a line."),
    "prune": LazyCommand("adapters.cli.prune:prune", "Remove stored contents by age and size; a dry run unless --yes."),
    "report": LazyCommand("adapters.cli.report:report", "Write what happened as one HTML page."),
    "approvals": LazyCommand("adapters.cli.approvals:approvals", "See what waits for a decision, and decide."),
    "inbox": LazyCommand("adapters.cli.inbox:inbox", "Steer agents: write what they should do next."),
    "tools": LazyCommand("adapters.cli.tools:tools", "See to the custom tools."),
    "undo": LazyCommand("adapters.cli.undo:undo", "Undo applied operations, several at one blow."),
    "hosts": LazyCommand("adapters.cli.hosts:hosts", "See which hosts share the log, and take over a lost one."),
    "store": LazyCommand("adapters.cli.store:store", "Look after the store that holds the event log."),
    "runner": LazyCommand("adapters.cli.runner:runner", "Run the commands of servers that ask for it over a socket."),
})

_HELP = """The execution layer under a coding agent: an event-sourced MCP server.

Every change to your files is an operation in an append-only log: it happens once, can be proven and can be undone.

Exit codes: 0 done; 1 refused, failed or damage found; 2 wrong usage, or it can't start or open the log.
"""

cli = click.version_option(package_name="codespace-es", prog_name="codespace-es")(
    LazyGroup(name="codespace-es", help=_HELP, table=COMMANDS)
)


def main() -> None:
    """Run the command line and end the process with its exit code."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a locale without our signs is no reason to fail
    sys.exit(run(sys.argv[1:]))


def run(arguments: list[str]) -> int:
    """Return the exit code of one command line; what went wrong is one line on stderr."""
    try:
        result = cli.main(args=arguments, prog_name="codespace-es", standalone_mode=False)
    except click.exceptions.Abort:
        return EXIT_FAILED
    except click.ClickException as error:
        told = StringIO()
        error.show(told)
        click.echo(spelt_out(told.getvalue(), kept="\n"), nl=False, err=True)
        return error.exit_code
    except StartupError as error:
        return _tell(str(error), EXIT_UNUSABLE)
    except CodespaceError as error:
        wire = error.to_wire()
        return _tell(f"{error} {wire['remedy']}", EXIT_FAILED)
    except (StoreUnavailableError, UnknownTopicError) as error:
        return _tell(f"The event log can't be used: {str(error).rstrip('.')}.", EXIT_UNUSABLE)
    except ValidationError as error:
        return _tell(f"The event log can't be used: it holds what this product doesn't write ({error.title}); see "
                     "`verify`.", EXIT_UNUSABLE)
    except InstanceClosedError as error:
        return _tell(f"Another server has declared this one dead: {str(error).rstrip('.')}.", EXIT_FAILED)
    except BrokenPipeError:
        # Nobody reads any more. What is still buffered goes nowhere, so that the interpreter's end has nothing to say.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_FAILED
    return result if isinstance(result, int) else 0


def _tell(sentence: str, exit_code: int) -> int:
    click.echo(f"codespace-es: {spelt_out(' '.join(sentence.split()))}", err=True)
    return exit_code
