"""`serve`, `undo`, `init`, `doctor`, `workspaces` and `demo` as processes of their own; usage and start-up errors."""

import json
import tempfile
import tomllib
from pathlib import Path

import anyio
import pytest
from click.testing import CliRunner

from adapters.cli.main import COMMANDS, cli, run
from adapters.settings.file import read_settings_file
from support.bound import bound_program
from support.cli_project import GREETING, Project, patch
from support.stdio_client import have_the_sdk_start_warm_servers
from support.warm_servers import PRODUCT, own_environment, run_to_end


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project.make(tmp_path)


def apply_first(project: Project) -> str:
    """Apply a patch under the key `first` and return its operation."""

    async def live() -> str:
        async with project.opened() as opened:
            return (await patch(opened, key="first")).operation_id

    return anyio.run(live)


def greeting(project: Project) -> str:
    return (project.root / "greeting.txt").read_text(encoding="utf-8")


# undo


def test_undo_needs_nothing_but_the_log_and_can_be_undone(project: Project) -> None:
    operation_id = apply_first(project)
    checked = project.call("undo", "first", "--check")
    assert checked.returncode == 0
    assert "+hello" in checked.stdout
    assert greeting(project) == "good day\n"
    undone = project.run("undo", operation_id, "--json")
    assert undone.returncode == 0, undone.stderr
    assert greeting(project) == GREETING
    again = project.call("undo", json.loads(undone.stdout)["operation_id"])
    assert "status\tapplied" in again.stdout
    assert greeting(project) == "good day\n"
    channels = project.call("log", "--kind", "operation.reverted").stdout.split("\t")
    assert channels[4] == "cli"


def test_an_undo_that_is_refused_says_why_and_exits_with_1(project: Project) -> None:
    operation_id = apply_first(project)
    (project.root / "greeting.txt").write_text("somebody else\n", encoding="utf-8")
    done = project.call("undo", operation_id)
    assert done.returncode == 1
    assert done.stderr.startswith("codespace-es: REVERT_CONFLICT")
    assert greeting(project) == "somebody else\n"
    assert project.call("undo", "op-nothing").returncode == 1


def test_an_undo_obeys_the_workspaces_that_are_configured(project: Project) -> None:
    operation_id = apply_first(project)
    done = project.call("undo", operation_id, "--workspace", f"demo={project.root}:read-only")
    assert done.returncode == 1
    assert "UNAUTHORIZED" in done.stderr
    assert greeting(project) == "good day\n"


# init, doctor, workspaces


def test_init_writes_a_configuration_that_serves_and_client_blocks_that_parse(project: Project, tmp_path: Path) -> None:
    home = {"HOME": str(tmp_path / "home"), "XDG_CONFIG_HOME": str(tmp_path / "home" / "config")}
    done = project.run("init", str(project.root), "--json", environment=home)
    told = json.loads(done.stdout)
    configuration = Path(told["configuration"])
    assert configuration.is_relative_to(tmp_path / "home" / "config")
    assert read_settings_file(configuration).workspaces["project"].root == str(project.root)
    blocks = list(told["clients"].values())
    assert json.loads(blocks[1])["mcpServers"]["codespace"]["args"] == ["serve", "--config", str(configuration)]
    assert json.loads(blocks[2])["servers"]["codespace"]["type"] == "stdio"
    assert tomllib.loads(blocks[3])["mcp_servers"]["codespace"]["args"][0] == "serve"
    assert project.run("serve", "--config", str(configuration), is_cold=True).returncode == 0
    assert "project\tworkspace-write" in project.call("workspaces", "--config", str(configuration)).stdout
    again = project.run("init", str(project.root), environment=home)
    assert again.returncode == 2
    assert "--force" in again.stderr


def test_doctor_finds_nothing_bad_here_and_leaves_nothing_behind(project: Project) -> None:
    apply_first(project)
    done = project.call("doctor", "--workspace", f"demo={project.root}", "--json")
    checks = {check["name"]: check for check in json.loads(done.stdout)}
    assert done.returncode == 0
    assert {"python", "sqlite", "openat2", "data directory", "lock directory", "workspace demo", "writing in demo",
            "event log"} <= set(checks)
    assert [path.name for path in project.root.iterdir()] == ["greeting.txt"]


def test_doctor_names_a_root_that_is_gone(project: Project, tmp_path: Path) -> None:
    config = tmp_path / "config.json"
    config.write_text(json.dumps({"workspaces": {"gone": {"root": str(tmp_path / "gone")}}}), encoding="utf-8")
    done = project.call("doctor", "--config", str(config))
    assert done.returncode == 1
    assert "bad\tworkspace gone" in done.stdout


def test_doctor_says_what_a_dead_server_left_open_and_who_can_settle_it(project: Project) -> None:
    assert project.run("serve", "--workspace", f"demo={project.root}", "--die-at", "patch.minted",
                       stdin=_apply_over_stdio()).returncode == -9
    unknown = project.call("doctor")
    known = project.call("doctor", "--workspace", f"demo={project.root}")
    assert f"--workspace NAME={project.root}" in unknown.stdout
    assert "The next server of this workspace settles it." in known.stdout
    moved = project.root.with_name("moved")
    project.root.rename(moved)
    project.root.mkdir()
    replaced = project.call("doctor", "--workspace", f"demo={project.root}:read-only")
    assert replaced.returncode == 1
    assert "another directory than the one on record" in replaced.stdout


def _apply_over_stdio() -> str:
    from support.cli_project import PATCH

    messages = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
            "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {
            "name": "apply_patch", "arguments": {"workspace_id": "demo", "patch": PATCH}}},
    ]
    return "".join(json.dumps(message) + "\n" for message in messages)


# demo


def test_the_demo_goes_as_told_and_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    have_the_sdk_start_warm_servers()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    assert run(["demo"]) == 0
    told = capsys.readouterr().out
    assert "All went as told." in told
    assert "✗" not in told
    assert "\x1b" not in told
    assert max(map(len, told.splitlines())) <= 100
    assert list(tmp_path.iterdir()) == []


# Usage and start-up


def test_serve_on_stdio_starts_without_importing_what_only_others_need(project: Project) -> None:
    """Other commands, and HTTP but for what the SDK imports by itself."""
    done = project.run("serve", "--ephemeral", "--root", str(project.root),
                       environment={"PYTHONPROFILEIMPORTTIME": "1"}, is_cold=True)
    imported = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    assert done.returncode == 0
    assert not project.data.exists()
    assert "adapters.mcp_server.serve" in imported
    assert not [name for name in imported if name.split(".")[0] in ("rich", "replay", "h11")]
    assert not [name for name in imported if name.startswith("adapters.http")]
    assert not [name for name in imported if name.startswith("adapters.cli.")
                and name.rpartition(".")[2] not in ("main", "lazy", "options", "serve")]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["serve"], "No workspace is configured"),
        (["serve", "--workspace", "demo"], "write ID=PATH"),
        (["serve", "--root", "/there/is/nothing"], "there is no directory"),
        (["serve", "--config", "/there/is/nothing.toml"], "can't be read"),
        (["serve", "--root", ".", "--data-dir", "/proc/nothing"], "The data directory /proc/nothing can't be made"),
        (["serve", "--root", ".", "--http", "here"], "write HOST:PORT"),
        (["serve", "--root", ".", "--http", "127.0.0.1:65536"], "write HOST:PORT"),
        (["serve", "--root", ".", "--http", "0.0.0.0:0"], "no token is set"),
        (["serve", "--root", ".", "--http", "[::]:0"], "no token is set"),
        (["serve", "--root", ".", "--http", "no-such-host.invalid:0"], "there is no such address"),
        (["serve", "--root", ".", "--wrong"], "No such option"),
        (["wrong"], "No such command 'wrong'."),
        (["serv"], "No such command 'serv'. Did you mean 'serve'?"),
        (["undo"], "name operations, or a work with --work"),
    ],
)
def test_what_cannot_start_says_so_on_stderr_and_exits_with_2(
    capsys: pytest.CaptureFixture[str], arguments: list[str], told: str
) -> None:
    assert run(arguments) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert told in printed.err
    assert "Traceback" not in printed.err


def test_an_unknown_key_is_one_line_with_the_nearest_known_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = tmp_path / "config.toml"
    config.write_text('[workspaces.demo]\nroot = "/x"\nprofil = "read-only"\n', encoding="utf-8")
    assert run(["serve", "--config", str(config)]) == 2
    assert capsys.readouterr().err == (
        f"codespace-es: {config}: workspaces.demo.profil: unknown key; did you mean 'profile'?\n"
    )


def test_a_data_directory_that_cannot_be_written_is_one_line(project: Project) -> None:
    project.data.mkdir(mode=0o500)
    done = run_to_end(
        bound_program([PRODUCT, "serve", "--root", str(project.root), "--data-dir", str(project.data)]),
        env=own_environment(),
    )
    assert done.returncode == 2
    assert done.stderr == (f"codespace-es: The data directory {project.data} can't be written by this user; "
                           "choose another with --data-dir.\n")


def test_every_command_has_help_and_the_summary_that_the_list_shows() -> None:
    listing = CliRunner().invoke(cli, ["--help"]).output
    for name, lazy in COMMANDS.items():
        helped = CliRunner().invoke(cli, [name, "--help"])
        assert helped.exit_code == 0
        assert lazy.summary.rstrip(".") in " ".join(listing.split())
        assert lazy.summary.rstrip(".") in " ".join(helped.output.split())
    assert CliRunner().invoke(cli, ["--version"]).output.startswith("codespace-es, version ")
