"""`log`, `show` and `verify` on a log that a server has written: plain where piped, JSON where asked for."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.cli.output import clean
from support.cli_project import Project, patch
from support.programs import running
from support.warm_servers import PRODUCT

PYSQLITE = pytest.importorskip("pysqlite3.dbapi2")


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A project in which one patch was applied under the key `first`, and another was refused."""
    made = Project.make(tmp_path_factory.mktemp("cli"))

    async def live() -> None:
        async with made.opened() as opened:
            await patch(opened, key="first")

    anyio.run(live)
    return made


@pytest.fixture
def copy(project: Project, tmp_path: Path) -> Project:
    """The same log, to be damaged."""
    data = tmp_path / "data"
    data.mkdir()
    (data / "codespace.db").write_bytes((project.data / "codespace.db").read_bytes())
    return Project(project.root, data)


def entries(project: Project, *arguments: str) -> list[dict[str, Any]]:
    done = project.call("log", "--json", *arguments)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_the_log_has_a_plain_line_an_event_when_piped(project: Project) -> None:
    done = project.run("log")
    lines = [line.split("\t") for line in done.stdout.splitlines()]
    assert done.returncode == 0
    assert done.stderr == ""
    assert "\x1b" not in done.stdout
    assert [line[0] for line in lines] == [str(number) for number in range(1, len(lines) + 1)]
    assert [line[3] for line in lines][:3] == ["store.created.v1", "instance.started.v1", "workspace.bound.v1"]
    assert {len(line) for line in lines} == {6}


def test_pages_of_the_log_join_without_gap_or_overlap(project: Project) -> None:
    whole = entries(project)
    first = project.call("log", "--after", "0", "--limit", "3", "--json")
    assert first.stderr == "More follows: --after 3\n"
    joined = [json.loads(line) for line in first.stdout.splitlines()] + entries(project, "--after", "3")
    assert joined == whole
    assert entries(project, "--limit", "2") == whole[-2:]


def test_filters_let_through_exactly_what_was_asked_for(project: Project) -> None:
    whole = entries(project)
    operation_id = next(each["stream_id"] for each in whole if each["topic"] == "operation.minted.v1")
    started = next(each for each in whole if each["topic"] == "instance.started.v1")
    of_operation = entries(project, "--operation", operation_id)
    assert [each["topic"] for each in of_operation] == [
        "claim.taken.v1", "operation.minted.v1", "operation.finished.v1"
    ]
    assert {each["topic"] for each in entries(project, "--kind", "operation")} == {
        "operation.minted.v1", "operation.finished.v1"
    }
    assert entries(project, "--session", started["instance_id"]) == whole
    assert {each["client"] for each in entries(project, "--session", "tester")} == {"tester/1"}
    assert entries(project, "--session", "nobody") == []
    assert entries(project, "--workspace", "demo", "--kind", "operation") == entries(project, "--kind", "operation")
    assert entries(project, "--workspace", "other") == []


async def live(project: Project) -> None:
    """Have a server start and stop."""
    async with project.opened():
        pass


@pytest.mark.parametrize("is_replaced", [False, True])
def test_following_ends_when_the_log_is_taken_away(tmp_path: Path, *, is_replaced: bool) -> None:
    """What is written at that place from then on would never be shown."""
    made = Project.make(tmp_path)
    anyio.run(live, made)
    command = [PRODUCT, "log", "--follow", "--after", "0", "--kind", "instance.stopped", "--data-dir", str(made.data)]
    with running(command) as following:
        assert "instance.stopped.v1" in following.stdout.readline()
        anyio.run(live, made)
        assert "instance.stopped.v1" in following.stdout.readline()  # it follows
        made.data.rename(tmp_path / "elsewhere")
        if is_replaced:
            anyio.run(live, made)
        assert "was removed or replaced while it was followed" in following.stderr.readline()
        assert following.process.wait(timeout=60) == 2


def test_following_shows_what_another_process_writes_and_ends_when_interrupted(tmp_path: Path) -> None:
    project = Project.make(tmp_path)
    anyio.run(live, project)
    command = [PRODUCT, "log", "--follow", "--after", "2", "--kind", "instance", "--data-dir", str(project.data)]
    with running(command) as following:
        assert "instance.stopped.v1" in following.stdout.readline()
        anyio.run(live, project)
        assert "instance.started.v1" in following.stdout.readline()
        assert "instance.stopped.v1" in following.stdout.readline()
        following.process.send_signal(signal.SIGINT)
        assert following.process.wait(timeout=20) == 0
        assert following.stderr.read() == ""


def test_show_tells_an_operation_by_its_id_and_by_its_key(project: Project) -> None:
    by_key = project.call("show", "first", "--json")
    story = json.loads(by_key.stdout)
    by_id = project.call("show", story["id"], "--json")
    plain = project.call("show", story["id"])
    assert by_key.stdout == by_id.stdout
    assert story["report"]["status"] == "applied"
    assert "+good day" in story["files"][0]["diff"]
    assert "status\tapplied" in plain.stdout
    assert "+good day" in plain.stdout
    assert "\x1b" not in plain.stdout


@pytest.mark.parametrize("topic", ["instance.started.v1", "workspace.bound.v1", "claim.taken.v1", "store.created.v1"])
def test_show_tells_every_other_kind_of_thing(project: Project, topic: str) -> None:
    stream_id = next(each["stream_id"] for each in entries(project) if each["topic"] == topic)
    done = project.call("show", stream_id)
    assert done.returncode == 0
    assert f"kind\t{topic.split('.', maxsplit=1)[0]}" in done.stdout


def test_show_of_what_is_not_there_fails_in_one_line(project: Project) -> None:
    done = project.call("show", "op-nothing")
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1


def test_verify_finds_a_whole_log_whole_and_its_head_again(project: Project) -> None:
    report = json.loads(project.call("verify", "--json").stdout)
    head = f"{report['head_position']}:{report['head_hash']}"
    again = project.call("verify", "--head", head)
    longer = project.call("verify", "--head", f"{report['head_position'] + 1}:{report['head_hash']}")
    assert report["is_ok"] is True
    assert again.returncode == 0
    assert "verdict\twhole and unchanged" in again.stdout
    assert longer.returncode == 1
    assert project.call("verify", "--head", "nonsense").returncode == 2


def test_verify_of_a_changed_event_says_where_and_exits_with_1(copy: Project) -> None:
    connection = PYSQLITE.connect(copy.data / "codespace.db")
    table, column = next(
        (name, column[1])
        for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'").fetchall()
        for column in connection.execute(f"PRAGMA table_info({name})").fetchall()
        if column[1] == "state"
    )
    for (trigger,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'trigger'").fetchall():
        connection.execute(f"DROP TRIGGER {trigger}")
    changed = connection.execute(
        f"UPDATE {table} SET {column} = CAST(replace(CAST({column} AS TEXT), 'greeting.txt', 'greetimg.txt') AS BLOB)"
        f" WHERE CAST({column} AS TEXT) LIKE '%greeting.txt%'"
    ).rowcount
    connection.commit()
    connection.close()
    assert changed
    done = copy.run("verify")
    assert done.returncode == 1
    assert "verdict\tDAMAGED" in done.stdout
    assert "law chain" in done.stdout
    assert json.loads(copy.call("verify", "--json").stdout)["is_ok"] is False


@pytest.mark.parametrize("command", [["log"], ["show", "first"], ["verify"], ["undo", "first"]])
def test_a_log_that_is_not_there_is_one_line_and_2(tmp_path: Path, command: list[str]) -> None:
    done = Project(tmp_path, tmp_path / "none").call(*command)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "There is no event log at" in done.stderr
    assert not (tmp_path / "none").exists()


def test_what_is_no_log_is_one_line_and_2(copy: Project) -> None:
    (copy.data / "codespace.db").write_bytes(b"only text " * 1000)
    done = copy.call("verify")
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert done.stderr.startswith("codespace-es: The event log can't be used")


def test_a_log_that_somebody_locks_is_one_line_and_2(copy: Project) -> None:
    connection = PYSQLITE.connect(copy.data / "codespace.db", isolation_level=None)
    connection.execute("PRAGMA locking_mode = EXCLUSIVE")
    connection.execute("CREATE TABLE not_ours (x)")
    try:
        done = copy.run("log")
    finally:
        connection.close()
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "locked" in done.stderr


def test_a_reader_that_goes_away_ends_the_log_quietly(project: Project) -> None:
    program = Path(sys.executable).with_name("codespace-es")
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        [str(program), "log", "--data-dir", str(project.data)], stdout=writing, stderr=subprocess.PIPE, text=True,
        check=False, timeout=60,
    )
    os.close(writing)
    assert done.returncode == 1
    assert done.stderr == ""


@pytest.mark.parametrize(
    "arguments", [["show", "op-\x1b]0;x\x07"], ["files", "\x9b2J"], ["log", "--\x1b[2J"], ["\x1b[2J"]], ids=ascii)
def test_no_error_can_move_a_terminal_s_cursor(project: Project, arguments: list[str]) -> None:
    done = project.call(*arguments)
    assert done.returncode in (1, 2)
    assert done.stderr.replace("\n", "").isprintable()


@given(st.text())
def test_no_name_can_move_a_terminal_s_cursor_or_break_a_line(text: str) -> None:
    shown = clean(text)
    assert shown.isprintable()
    assert len(shown.splitlines()) <= 1
    assert "\t" not in shown
