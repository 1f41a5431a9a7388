"""`replay`: a moment of the log, told plainly where piped, and walked through with keys in a terminal."""

import json
import os
import pty
import select

import anyio
import pytest

from adapters.cli.keys import Keys
from adapters.cli.stepping import step
from support.cli_project import Project, patch
from support.warm_servers import PRODUCT, own_environment, start_on


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    made = Project.make(tmp_path_factory.mktemp("replay"))

    async def live() -> None:
        async with made.opened() as opened:
            await patch(opened, key="first")

    anyio.run(live)
    return made


def test_a_moment_is_told_plainly_and_as_json(project: Project) -> None:
    plain = project.call("replay", "--at", "first@1")
    assert plain.returncode == 2, "an operation key isn't a stream"
    plain = project.call("replay", "--at", "2")
    assert plain.returncode == 0
    assert "position\t2 of 7" in plain.stdout
    assert "open\tinstance inst-" in plain.stdout
    told = json.loads(project.call("replay", "--at", "first", "--json").stdout)
    assert told["operations"] == {"applied": 1}
    assert told["position"] == 6


def test_the_log_is_narrowed_to_a_time(project: Project) -> None:
    whole = project.call("log").stdout.splitlines()
    middle = whole[3].split("\t")[1]
    since = project.call("log", "--since", middle).stdout.splitlines()
    until = project.call("log", "--until", middle).stdout.splitlines()
    assert until + since == whole
    assert whole[3] in since
    assert project.call("log", "--since", "yesterday").returncode == 2


def test_every_aggregate_is_listed_one_a_line(project: Project) -> None:
    rows = [line.split("\t") for line in project.call("replay", "--all").stdout.splitlines()]
    told = [json.loads(line) for line in project.call("replay", "--all", "--json").stdout.splitlines()]
    assert [row[0] for row in rows] == [each["stream_id"] for each in told]
    assert {row[1] for row in rows} == {"store", "instance", "workspace", "claim", "operation"}


def test_one_thing_is_told_as_it_was_then(project: Project) -> None:
    operation = next(
        line.split("\t")[0] for line in project.call("replay", "--all").stdout.splitlines() if line.startswith("op-")
    )
    assert "state\tMinted" in project.call("replay", operation, "--at", "5").stdout
    assert json.loads(project.call("replay", operation, "--json").stdout)["report"]["status"] == "applied"
    early = project.call("replay", operation, "--at", "1")
    assert (early.returncode, early.stdout) == (1, "")


@pytest.mark.parametrize("moment", ["99", "never", "op-unknown"])
def test_a_moment_that_is_not_there_is_wrong_usage(project: Project, moment: str) -> None:
    done = project.call("replay", "--at", moment)
    assert (done.returncode, done.stdout) == (2, "")


def test_piped_stepping_prints_the_one_moment(project: Project) -> None:
    done = project.run("replay", "--step", "--at", "5")
    assert "state\tnothing -> Minted" in done.stdout
    assert "update\tgreeting.txt" in done.stdout
    assert "\x1b" not in done.stdout


def test_keys_move_and_anything_else_stays() -> None:
    shown: list[int] = []

    def show(position: int) -> int:
        shown.append(max(0, min(position, 25)))
        return shown[-1]

    keys = iter(["\x1b[C", "x", "\x1b[B", "\x1b[D", "\x1b[A", "\x1b[F", "\x1b[C", "\x1b[H", "\x1b[D", "q", "\x1b[C"])
    assert step(3, show=show, next_key=lambda: next(keys)) == 0
    assert shown == [3, 4, 14, 13, 3, 25, 25, 0, 0]


def test_keys_are_told_apart_however_their_bytes_arrive() -> None:
    reading, writing = os.pipe()
    keys = Keys(reading)
    os.write(writing, b"l\x1b[C\x1b[1;5Dq\xc3")
    assert [keys.next() for _ in range(4)] == ["l", "\x1b[C", "\x1b[1;5D", "q"]
    os.write(writing, b"\xa9\x1b")
    assert [keys.next(), keys.next()] == ["\u00e9", "\x1b"]
    os.close(writing)
    assert keys.next() == ""
    os.close(reading)


@pytest.mark.parametrize("ending", [KeyboardInterrupt, EOFError])
def test_an_interrupt_leaves(ending: type[BaseException]) -> None:
    def next_key() -> str:
        raise ending

    assert step(3, show=lambda position: position, next_key=next_key) == 3


def test_a_terminal_steps_with_the_arrow_keys(project: Project) -> None:
    leader, follower = pty.openpty()
    environment = {**own_environment(), "TERM": "xterm", "COLUMNS": "120"}
    command = [PRODUCT, "replay", "--step", "--at", "4", "--data-dir", str(project.data)]
    child = start_on((follower, follower, follower), command, env=environment)
    os.close(follower)
    try:
        for key, shown in ((b"", b"4 of 7"), (b"\x1b[C", b"5 of 7"), (b"\x1b[D", b"4 of 7")):
            os.write(leader, key)
            _read_until(leader, shown, b"leave")
        os.write(leader, b"q")
        assert child.wait(timeout=20) == 0
    finally:
        child.kill()
        child.wait()
        os.close(leader)


def _read_until(descriptor: int, *signs: bytes) -> None:
    """Read until every one of `signs` has come, in order."""
    seen = b""
    for sign in signs:
        while sign not in seen:
            assert select.select([descriptor], [], [], 20)[0], f"{sign!r} never came: {seen!r}"
            seen += os.read(descriptor, 4096)
        seen = seen.partition(sign)[2]
