"""`hosts`: which machines share the log, and the operator's word that one of them is lost."""

import sys
from functools import partial

import anyio
import click
from rich.table import Table

from adapters.cli.host_list import hosts_of
from adapters.cli.options import as_json, settings_of_log
from adapters.cli.output import console, is_terminal, print_json, print_pairs, print_row
from adapters.cli.reading import open_log
from adapters.settings.load import Settings
from codespace_es.command_handlers.taking_over import HostTakenOver, TakeOverHost
from codespace_es.vocabulary.event import Caller
from codespace_es.vocabulary.identifiers import RequestId


@click.group()
def hosts() -> None:
    """See which hosts share the log, and take over a lost one.

    Files and commands belong to the host that has them: its own servers settle what a dead one of them left. Nobody
    else can tell a host that is cut off from one that is gone.
    """


@hosts.command("list")
@as_json
@settings_of_log
def list_all(settings: Settings, *, is_json: bool) -> None:
    """List the hosts that have servers or something left open.

    Piped, each line has machine, host name, number of servers, number of patches and commands, and `this` for this
    host, separated by tabs.
    """
    with open_log(settings) as source:
        found = hosts_of(source)
    rows = [
        (each.machine_id, each.name, str(len(each.instances)), str(each.open_count),
         "this" if each.machine_id == settings.machine_id else "")
        for each in found
    ]
    if is_json:
        print_json([
            {"machine_id": each.machine_id, "host": each.name, "instances": list(each.instances),
             "open": each.open_count, "is_this": each.machine_id == settings.machine_id} for each in found
        ])
    elif is_terminal():
        table = Table("machine", "host", "servers", "open", "", box=None)
        for row in rows:
            table.add_row(*row)
        console().print(table)
    else:
        for row in rows:
            print_row(*row)


@hosts.command("take-over")
@click.argument("machine", metavar="MACHINE")
@click.option("--reason", default="", help="Why it is known to be lost; it is kept in the log.")
@click.option("--yes", "is_meant", is_flag=True, help="Don't ask.")
@as_json
@settings_of_log
def take_over(settings: Settings, *, machine: str, reason: str, is_meant: bool, is_json: bool) -> int:
    """Declare a host lost: shut its servers out of the log and close what they left open.

    MACHINE as `hosts list` names it. Its servers can't append any more, also if they only were cut off: they end when
    they try. Its patches and commands end as unknown, its queued approvals can be resumed again. Its files aren't
    touched. Servers that start there later are not shut out. Exit codes: 0 done; 1 refused, or not confirmed.
    """
    if not is_meant:
        if not (sys.stdin.isatty() and is_terminal()):
            raise click.UsageError("say --yes: nobody can be asked here")
        if not click.confirm(f"Is host {machine} lost for good, or known to be stopped?"):
            return 1
    taken = anyio.run(partial(_take_over, settings, TakeOverHost(machine_id=machine, reason=reason)))
    if is_json:
        print_json(taken.to_wire())
        return 0
    print_pairs([
        ("servers shut out", str(len(taken.instances))),
        ("patches unknown", "\n".join(taken.operations) or "none"),
        ("commands unknown", "\n".join(taken.processes) or "none"),
    ])
    return 0


async def _take_over(settings: Settings, command: TakeOverHost) -> HostTakenOver:
    from adapters.bootstrap import open_codespace

    async with open_codespace(settings, transport="cli") as opened:
        caller = Caller("cli", RequestId(f"req-{opened.world.ids.uuid()}"), "codespace-es hosts take-over")
        answer = await opened.codespace.handle(command, caller)
    assert isinstance(answer, HostTakenOver)
    return answer
