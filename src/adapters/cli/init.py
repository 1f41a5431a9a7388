"""`init`: write a commented configuration for a directory, and print what MCP clients need to start the server."""

import json
import os
import re
import shutil
import sys
from pathlib import Path

import click

from adapters.cli.output import as_shell_words, clean, console, is_terminal, print_json
from adapters.settings.directories import default_configuration_directory
from adapters.settings.file import check_settings, read_settings_file
from adapters.settings.problem import StartupError

_TEMPLATE = """\
# Configuration of codespace-es. Every key: docs/configuration.md.
# It lies outside the workspace, so that an agent can't change its own permissions.

# Where the event log is kept; the default is this user's data directory.
# data_dir = "/absolute/path"

# What holds for every workspace that doesn't say otherwise:
[defaults]
# Files that no patch may write, beside .git.
# protected_paths = [".env", "secrets/**"]

[workspaces.{name}]
root = {root}
# read-only: read, find and search. workspace-write: patches too.
profile = "{profile}"
# lenient: a hunk may match apart from white space, with a warning. strict: exactly, and in one place only.
patch_matching = "lenient"
"""


@click.command()
@click.argument("path", metavar="[PATH]", default=".", type=click.Path(exists=True, file_okay=False))
@click.option("--name", metavar="ID", help="The workspace's name; by default made from the directory's.")
@click.option("--profile", type=click.Choice(["read-only", "workspace-write"]), default="workspace-write",
              show_default=True, help="What agents may do.")
@click.option("--output", metavar="FILE", help="Where to write; by default NAME.toml in your configuration directory.")
@click.option("--force", "is_forced", is_flag=True, help="Replace a file that is there.")
@click.option("--json", "is_json", is_flag=True, help="Print JSON.")
def init(path: str, *, name: str | None, profile: str, output: str | None, is_forced: bool, is_json: bool) -> None:
    """Write a configuration and print what MCP clients need.

    PATH is the directory to serve, the current one unless given; the file that is written explains itself.
    """
    root = os.path.realpath(path)
    workspace_id = name or _name_from(root)
    file = Path(output).absolute() if output else default_configuration_directory() / f"{workspace_id}.toml"
    if not file.name.endswith(".toml"):
        raise click.UsageError("--output must end in .toml.")
    check_settings({"workspaces": {workspace_id: {"root": root, "profile": profile}}}, origin="init")
    text = _TEMPLATE.format(name=json.dumps(workspace_id), root=json.dumps(root), profile=profile)
    _write(file, text, is_forced=is_forced)
    read_settings_file(file)
    clients = client_blocks(_program(), file)
    if is_json:
        print_json({"configuration": str(file), "workspace_id": workspace_id, "root": root, "clients": clients})
        return
    click.echo(f"Wrote {clean(str(file))}: workspace {workspace_id!r} is {clean(root)} ({profile}).")
    if Path(file).resolve().is_relative_to(root):
        click.echo("It lies inside the workspace: patches can't write it, but other tools of your agent can.", err=True)
    for client, block in clients.items():
        _print_block(client, block)


def client_blocks(program: str, configuration: Path) -> dict[str, str]:
    """Return, by client, the text that makes it start the server with `configuration`."""
    arguments = ["serve", "--config", str(configuration)]
    server = {"command": program, "args": arguments}
    toml_arguments = ", ".join(json.dumps(argument) for argument in arguments)
    return {
        "Claude Code: run this": as_shell_words(
            ["claude", "mcp", "add", "--transport", "stdio", "codespace", "--", program, *arguments]
        ),
        "Cursor: .cursor/mcp.json": json.dumps({"mcpServers": {"codespace": server}}, indent=2),
        "VS Code: .vscode/mcp.json": json.dumps({"servers": {"codespace": {"type": "stdio", **server}}}, indent=2),
        "Codex: ~/.codex/config.toml": (
            f"[mcp_servers.codespace]\ncommand = {json.dumps(program)}\nargs = [{toml_arguments}]"
        ),
    }


def _name_from(root: str) -> str:
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", os.path.basename(root)).strip("-._")[:64]
    return name or "workspace"


def _program() -> str:
    """Return this command by its whole path: a client's PATH is often not the shell's."""
    beside = Path(sys.executable).with_name("codespace-es")
    return str(beside) if beside.exists() else shutil.which("codespace-es") or "codespace-es"


def _write(file: Path, text: str, *, is_forced: bool) -> None:
    try:
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with file.open("w" if is_forced else "x", encoding="utf-8") as stream:
            stream.write(text)
    except FileExistsError as error:
        raise StartupError(f"{file} is there already; --force replaces it, --output names another.") from error
    except OSError as error:
        raise StartupError(f"{file} can't be written: {error.strerror or error}.") from error


def _print_block(client: str, block: str) -> None:
    click.echo()
    if is_terminal():
        console().print(client, style="bold")
    else:
        click.echo(f"# {client}")
    click.echo(block)
