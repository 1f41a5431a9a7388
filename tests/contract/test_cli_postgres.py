"""The command line and a real server on a log in PostgreSQL: everything that works on a file, without its password."""

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import anyio
import anyio.to_thread
import pytest
from mcp import Client, StdioServerParameters, stdio_client

from adapters.bootstrap import open_codespace
from adapters.cli.options import effective_settings
from adapters.log.reader import LogReader
from adapters.log.sqlite.connecting import driver
from adapters.settings.load import Flags
from adapters.settings.postgres_address import PostgresAddress
from codespace_es.aggregates.store import StoreCopied
from codespace_es.event_catalogue import CATALOGUE
from replay.verify import verify
from support.cli_project import PATCH, Called, Project, patch
from support.postgres import PostgresServer
from support.stdio_client import have_the_sdk_start_warm_servers

PASSWORD = "s3cret-of-the-tests"


class PostgresProject(Project):
    """A project whose log is in PostgreSQL; no command may tell the password."""

    def call(self, *arguments: str) -> Called:
        called = super().call(*arguments)
        assert PASSWORD not in called.stdout + called.stderr
        return called


def with_password(address: PostgresAddress) -> str:
    return address.url.replace("codespace@", f"codespace:{PASSWORD}@")


@pytest.fixture(scope="module")
def lived(postgres: PostgresServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[PostgresProject]:
    """Yield a project that a real server has patched and run a command in."""
    project = PostgresProject.make(tmp_path_factory.mktemp("lived"))
    assert isinstance(project, PostgresProject)
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("CODESPACE_STORE", with_password(postgres.new_schema()))
        assert project.call("store", "init").stdout.splitlines()[1].split() == ["event", "log", "made"]
        anyio.run(live, project)
        yield project


async def live(project: Project) -> None:
    have_the_sdk_start_warm_servers()
    server = StdioServerParameters(
        command=sys.executable,
        args=["-m", "adapters.cli", "serve", "--data-dir", str(project.data), "--workspace", f"demo={project.root}"],
        env={"CODESPACE_STORE": os.environ["CODESPACE_STORE"], "PATH": os.environ["PATH"]},
    )
    async with Client(stdio_client(server)) as client:
        patched = await client.call_tool("apply_patch", {
            "workspace_id": "demo", "patch": PATCH, "operation_key": "first"})
        assert patched.structured_content is not None, patched
        assert patched.structured_content["status"] == "applied"
        again = await client.call_tool("apply_patch", {
            "workspace_id": "demo", "patch": PATCH, "operation_key": "first"})
        assert again.structured_content is not None
        assert again.structured_content["operation_id"] == patched.structured_content["operation_id"]
        assert again.structured_content["replayed"] is True
        ran = await client.call_tool("exec_command", {"workspace_id": "demo", "command": ["echo", "hello"]})
        assert ran.structured_content is not None, ran
        process_id = ran.structured_content["process_id"]
        with anyio.fail_after(30):
            while True:
                status = await client.call_tool("process_status", {"process_id": process_id})
                assert status.structured_content is not None
                if status.structured_content["state"] == "exited":
                    break
                await anyio.sleep(0.05)


def test_the_beginning_of_an_id_stands_for_it(lived: PostgresProject) -> None:
    log = lived.call("log", "--kind", "operation.minted", "--json").stdout.splitlines()
    operation = str(json.loads(log[0])["stream_id"])
    assert lived.call("show", operation[:11]).stdout == lived.call("show", operation).stdout


def test_the_settings_know_the_place_and_tell_no_password(lived: PostgresProject) -> None:
    settings = effective_settings(Flags(data_dir=str(lived.data)), os.environ)
    assert str(settings.log_place).startswith("postgresql://codespace@127.0.0.1:")
    assert PASSWORD not in repr(settings)


def test_making_the_log_again_changes_nothing(lived: PostgresProject) -> None:
    assert json.loads(lived.call("store", "init", "--json").stdout)["is_made"] is False


def test_the_log_is_whole_and_every_view_of_it_works(lived: PostgresProject, tmp_path: Path) -> None:
    verified = lived.call("verify", "--json", "--checkpoint", str(tmp_path / "checkpoint.json"))
    assert json.loads(verified.stdout)["is_ok"], verified.stdout
    assert lived.call("verify", "--against", str(tmp_path / "checkpoint.json")).returncode == 0
    listed = lived.call("log", "--json", "--after", "0", "--limit", "100").stdout
    entries = [json.loads(line) for line in listed.splitlines()]
    topics = [entry["topic"] for entry in entries]
    assert {topics.count(kind) for kind in ("operation.minted.v1", "operation.finished.v1", "process.exited.v1")} == {1}
    operation = next(entry["stream_id"] for entry in entries if entry["topic"] == "operation.minted.v1")
    assert "greeting.txt" in lived.call("show", operation).stdout
    exported = lived.run("export", environment={"CODESPACE_STORE": os.environ["CODESPACE_STORE"]})
    assert len(exported.stdout.splitlines()) == len(entries)
    for command in (("replay", "--at", "5"), ("diff", f"1..{len(entries)}"), ("files",), ("compare",),
                    ("prune", "--older-than", "1d"),
                    ("approvals", "list"), ("processes",), ("store", "reindex"), ("store", "reindex", "--check")):
        called = lived.call(*command)
        assert called.returncode == 0, (command, called)
    assert lived.call("report", "--output", str(tmp_path / "report.html")).returncode == 0


def test_a_machine_that_has_served_nothing_keeps_a_checkpoint_too(lived: PostgresProject, tmp_path: Path) -> None:
    elsewhere, kept = PostgresProject(lived.root, tmp_path / "none" / "data"), str(tmp_path / "checkpoint.json")
    assert elsewhere.call("verify", "--checkpoint", kept).returncode == 0
    assert (elsewhere.data.stat().st_mode & 0o777) == 0o700
    assert elsewhere.call("verify", "--against", kept).stderr == ""


def test_doctor_names_the_log_without_its_password(lived: PostgresProject) -> None:
    told = lived.call("doctor").stdout
    assert "postgresql://codespace@127.0.0.1:" in told
    assert "events" in told


def test_an_operation_is_undone_from_the_command_line(lived: PostgresProject) -> None:
    entries = [json.loads(line) for line in lived.call("log", "--json", "--after", "0").stdout.splitlines()]
    operation = next(entry["stream_id"] for entry in entries if entry["topic"] == "operation.minted.v1")
    undone = lived.call("undo", operation, "--yes")
    assert undone.returncode == 0, undone
    assert (lived.root / "greeting.txt").read_text(encoding="utf-8") == "hello\n"
    assert lived.call("verify").returncode == 0


def test_a_log_that_was_not_made_says_how_to_make_it(
    postgres: PostgresServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = PostgresProject.make(tmp_path)
    monkeypatch.setenv("CODESPACE_STORE", with_password(postgres.new_schema()))
    for command in (("log",), ("serve", "--root", str(project.root))):
        called = project.call(*command)
        assert called.returncode == 2
        assert "codespace-es store init" in called.stderr


@pytest.mark.parametrize(("store", "told"), [
    ("mysql://db", "can be sqlite, or a PostgreSQL"),
    (f"postgresql://me:{PASSWORD}@127.0.0.1:1/log", "can't be opened"),
    (f"postgresql://me:{PASSWORD}/@db/log", "must be like"),
])
def test_an_unusable_store_is_a_start_up_error_without_its_password(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, store: str, told: str
) -> None:
    project = PostgresProject.make(tmp_path)
    monkeypatch.setenv("CODESPACE_STORE", store)
    called = project.call("serve", "--root", str(project.root))
    assert called.returncode == 2
    assert told in called.stderr


def test_a_log_goes_to_postgres_and_back_with_its_chain(
    postgres: PostgresServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CODESPACE_STORE", raising=False)
    project = PostgresProject.make(tmp_path)
    anyio.run(work_a_little, project)
    tables, file = postgres.new_schema(), tmp_path / "back.db"
    there = project.call("store", "copy", tables.url, "--json")
    assert there.returncode == 0, there
    assert project.call("store", "copy", tables.url).returncode == 1  # there is a log already
    monkeypatch.setenv("CODESPACE_STORE", tables.url)
    assert project.call("verify").returncode == 0
    assert project.call("store", "reindex", "--check").returncode == 0
    anyio.run(work_a_little, project)
    back = project.call("store", "copy", str(file), "--json")
    assert back.returncode == 0, back
    monkeypatch.delenv("CODESPACE_STORE")
    monkeypatch.setenv("CODESPACE_OPERATIONS_DB", str(file))
    with LogReader(project.data / "codespace.db", CATALOGUE) as first, LogReader(tables, CATALOGUE) as second, \
            LogReader(file, CATALOGUE) as third:
        rows = list(third.raw_rows())
        assert rows[: first.head()[0]] == list(first.raw_rows())
        assert rows[: second.head()[0]] == list(second.raw_rows())
        assert sorted(third.stored_contents()) == sorted(second.stored_contents())
        for reader, origin in ((second, first), (third, second)):
            assert verify(reader).findings == ()
            after = next(reader.read_log(after=origin.head()[0]))
            assert isinstance(after.event, StoreCopied)
            assert (after.event.from_position, after.event.from_hash) == (
                origin.head()[0], "sha256:" + origin.head()[1].hex())


async def work_a_little(project: PostgresProject) -> None:
    settings = effective_settings(Flags(data_dir=str(project.data), workspaces=(f"demo={project.root}",)), os.environ)
    async with open_codespace(settings, transport="stdio") as opened:
        number = len(list(project.root.iterdir()))
        await patch(opened, f"*** Begin Patch\n*** Add File: at{number}.txt\n+x\n*** End Patch\n")


def test_a_copy_of_a_log_that_is_served_or_damaged_or_missing_writes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CODESPACE_STORE", raising=False)
    project = PostgresProject.make(tmp_path)
    target = tmp_path / "copy.db"
    assert project.call("store", "copy", str(target)).returncode == 2

    async def copy_while_served() -> Called:
        async with project.opened():
            return await anyio.to_thread.run_sync(project.call, "store", "copy", str(target))

    served = anyio.run(copy_while_served)
    assert served.returncode == 2
    assert "is running: stop it first" in served.stderr
    anyio.run(work_a_little, project)
    connection = driver.connect(project.data / "codespace.db", isolation_level=None)
    connection.execute("DROP TRIGGER events_refuse_update")
    connection.execute("UPDATE events SET state = x'00' WHERE position = 3")
    connection.close()
    damaged = project.call("store", "copy", str(target))
    assert damaged.returncode == 1
    assert "damaged at position 3" in damaged.stderr
    assert not list(tmp_path.glob("copy.db*"))
    secret = project.call("store", "copy", f"postgresql://me:{PASSWORD}@db/log")
    assert secret.returncode == 2
    assert "command line" in secret.stderr


@pytest.fixture
def worked(postgres: PostgresServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> PostgresProject:
    """A project whose server has applied a patch."""
    project = PostgresProject.make(tmp_path)
    monkeypatch.setenv("CODESPACE_STORE", postgres.new_log().url)
    anyio.run(work_a_little, project)
    assert isinstance(project, PostgresProject)
    return project


def test_what_is_pruned_is_gone_and_told_and_the_log_is_whole(worked: PostgresProject) -> None:
    log = worked.call("log", "--after", "0", "--kind", "operation.minted", "--json").stdout
    operation = json.loads(log)["stream_id"]
    assert "+x" in worked.call("show", operation).stdout
    chosen = json.loads(worked.call("prune", "--older-than", "0m", "--json").stdout)
    done = json.loads(worked.call("prune", "--older-than", "0m", "--yes", "--json").stdout)
    assert done["removed"] == chosen["chosen"] > 0
    shown = worked.call("show", operation).stdout
    assert "+x" not in shown
    assert "pruned" in shown
    assert worked.call("verify").returncode == 0
    assert worked.call("files", "--restore", str(worked.root.parent / "out")).returncode == 1
