"""What other tools got wrong with commands, as reported in public: each case by its number in the field's reports."""

import os
import shutil
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import anyio
import pytest

from codespace_es.command_handlers.observing import ReadProcess
from codespace_es.command_handlers.reading import FindFiles, ReadFile
from codespace_es.vocabulary.errors import CodespaceError, ErrorCode
from support.commands import SECONDS_MAX, Commands
from support.process_runner import children_of, is_alive
from support.server import Server

pytestmark = pytest.mark.anyio

ASK = """
import termios
with open("/dev/tty", "r+b", buffering=0) as tty:
    mode = termios.tcgetattr(tty)
    mode[3] &= ~termios.ECHO
    termios.tcsetattr(tty, termios.TCSANOW, mode)
    tty.write(b"Password: ")
    print(len(tty.readline()))
"""


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    """Share a server between the tests."""
    return "asyncio"


@pytest.fixture(scope="module", params=["auto", "off"])
async def shared(
    tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> AsyncIterator[tuple[Server, Path]]:
    """Confined and not: what holds may not depend on it."""
    scratch = tmp_path_factory.mktemp("shared")
    (scratch / "ws").mkdir()
    async with Server(scratch, {"ws": scratch / "ws"}, sandbox=request.param) as server:
        yield server, scratch


@pytest.fixture
async def commands(shared: tuple[Server, Path], root: Path) -> AsyncIterator[Commands]:
    with anyio.fail_after(SECONDS_MAX):
        commands = Commands(shared[0])
        yield commands
        await commands.end_all()


@pytest.fixture
def root(shared: tuple[Server, Path]) -> Path:
    """The workspace, as if it were new."""
    made = shared[1] / "ws"
    for old in made.iterdir():
        shutil.rmtree(old) if old.is_dir() else old.unlink()
    (made / "n.txt").write_text("needle\n")
    return made


@pytest.fixture
def own_root(tmp_path: Path) -> Path:
    """A workspace for a server of the test's own."""
    made = tmp_path / "ws"
    made.mkdir()
    (made / "n.txt").write_text("needle\n")
    return made


async def test_what_is_left_in_the_background_ends_soon_after_the_command(commands: Commands, root: Path) -> None:
    """FR-071, FR-073, FR-075."""
    process_id = await commands.shell("(sleep 300; echo done > bg.txt) & echo started")
    assert await commands.until(process_id, "started") == "started\n"
    while (at_once := await commands.status(process_id)).state == "running":
        await anyio.sleep(0.005)
    assert (at_once.termination, at_once.exit_code) == ("exited", 0)
    for _ in range(10):
        await commands.server.handle(ReadFile(workspace_id="ws", path="n.txt"))
    report = await commands.ended(process_id)
    assert (report.termination, report.exit_code) == ("exited", 0)
    assert report.descendants_killed
    assert (await commands.run("true"))[0].exit_code == 0
    assert not (root / "bg.txt").exists()


async def test_whoever_stops_waiting_stops_nothing(commands: Commands) -> None:
    """FR-077, FR-079."""
    process_id = await commands.start("sleep", "300")
    with anyio.move_on_after(0.05):
        await commands.read(process_id, wait_ms=30_000)
    assert (await commands.status(process_id)).live
    await commands.terminate(process_id)
    assert (await commands.ended(process_id)).termination == "terminated"


async def test_the_whole_tree_ends(commands: Commands, root: Path) -> None:
    """FR-081."""
    process_id = await commands.shell("(setsid bash -c 'while :; do date +%N > beat; sleep 0.02; done' &) ; wait; "
                                      "while :; do sleep 0.02; done")
    while not (root / "beat").exists():
        await anyio.sleep(0.01)
    await commands.terminate(process_id)
    await commands.ended(process_id)
    last = (root / "beat").read_text()
    await anyio.sleep(0.1)
    assert (root / "beat").read_text() == last


async def test_whoever_ignores_the_request_to_end_is_killed(commands: Commands) -> None:
    """FR-083."""
    process_id = await commands.shell("trap '' TERM; echo ready; (trap '' TERM; sleep 300) & wait")
    await commands.until(process_id, "ready")
    await commands.terminate(process_id, grace_ms=100)
    assert (await commands.ended(process_id)).termination == "terminated"


async def test_a_stopped_command_ends_too(commands: Commands) -> None:
    """FR-085."""
    process_id = await commands.shell("echo ready; kill -STOP $$; echo on")
    await commands.until(process_id, "ready")
    await commands.terminate(process_id)
    assert (await commands.ended(process_id)).termination == "terminated"


async def test_nothing_is_left_of_commands_that_nobody_asked_about(commands: Commands) -> None:
    """FR-089, FR-131."""
    started: list[str] = []
    while len(started) < 10:
        try:
            started.append(await commands.start("true"))
        except CodespaceError:  # the one before is just ending
            await anyio.sleep(0.005)
    for process_id in started:
        assert (await commands.ended(process_id)).exit_code == 0
        assert (await commands.read(process_id)).eof
    assert [child for child in children_of(os.getpid()) if child[1] == "Z"] == []


async def test_an_interrupt_from_the_terminal_is_told(commands: Commands) -> None:
    """FR-093."""
    process_id = await commands.python("import time; print('ready', flush=True); time.sleep(60)", tty=True)
    await commands.until(process_id, "ready")
    await commands.write(process_id, "\x03")
    report = await commands.ended(process_id)
    assert report.signal is not None
    assert (report.termination, report.signal.number) == ("signaled", signal.SIGINT)


async def test_every_command_begins_in_the_root(commands: Commands, root: Path) -> None:
    """FR-095."""
    await commands.run("bash", "-c", "mkdir tmpd && cd tmpd && rmdir ../tmpd; true")
    assert (await commands.run("pwd"))[1] == f"{root}\n"


async def test_a_reader_of_its_input_waits_for_it_and_takes_nobody_elses(commands: Commands) -> None:
    """FR-099, FR-101."""
    process_id = await commands.start("cat")
    for _ in range(3):
        await commands.server.handle(FindFiles(workspace_id="ws", pattern="*"))
    await commands.write(process_id, "mine\n", eof=True)
    assert await commands.output(process_id) == "mine\n"
    report, output = await commands.run("grep", "-r", "needle", stdin="null")
    assert (report.exit_code, output.strip()) == (0, "n.txt:needle")
    assert (await commands.run("cat", stdin="null"))[1] == ""


async def test_a_long_line_reaches_a_terminal_whole(commands: Commands) -> None:
    """FR-105."""
    process_id = await commands.shell("stty -echo; echo ready; head -n 1 | wc -c", tty=True)
    await commands.until(process_id, "ready")
    await commands.write(process_id, "x" * 6_000 + "\n")
    assert "6001" in await commands.output(process_id)


async def test_a_prompt_needs_a_terminal_and_its_answer_is_nowhere(
    commands: Commands, shared: tuple[Server, Path]
) -> None:
    """FR-107, FR-109."""
    report, _ = await commands.run("python3", "-c", ASK)
    assert report.exit_code not in (0, None)
    process_id = await commands.python(ASK, tty=True)
    await commands.until(process_id, "Password: ")
    await commands.write(process_id, "hunter-two\n")
    assert (await commands.output(process_id)).endswith("11\r\n")
    process_id = await commands.python(ASK, tty=True)
    await commands.until(process_id, "Password: ")
    await commands.write(process_id, "\x03")
    assert (await commands.ended(process_id)).termination in ("signaled", "exited")
    stored = b"".join(path.read_bytes() for path in (shared[1] / "data").iterdir())
    assert b"hunter-two" not in stored


@pytest.mark.parametrize("tty", [False, True])
async def test_no_pager_waits_for_somebody(commands: Commands, tty: bool) -> None:
    """FR-111: what programs ask for is set, and can be set otherwise."""
    script = 'for i in $(seq 1 200); do echo line $i; done | ${GIT_PAGER:-less}; echo "$PAGER $GIT_TERMINAL_PROMPT"'
    _, output = await commands.run("bash", "-c", script, tty=tty)
    assert output.replace("\r", "").endswith("line 200\ncat 0\n")


async def test_a_shell_that_waits_for_more_can_be_seen_and_freed(commands: Commands) -> None:
    """FR-113. A shell drops what was typed ahead of an interrupt's prompt, so that prompt is waited for."""
    process_id = await commands.start("bash", "--norc", "--noprofile", tty=True)
    await commands.write(process_id, "PS1='no''w: '; PS2='mo''re: '\n")  # in pieces: the echo is no prompt
    await commands.until(process_id, "now: ")
    await commands.write(process_id, "cat <<END\na line\n  END\n")
    await commands.until(process_id, "more: ", times=3)
    assert (await commands.status(process_id)).state == "running"
    await commands.write(process_id, "\x03")
    await commands.until(process_id, "now: ", times=2)
    await commands.write(process_id, "echo $((40+2))\n")
    await commands.until(process_id, "42")
    await commands.write(process_id, "exit 5\n")
    assert (await commands.ended(process_id)).exit_code == 5


@pytest.mark.parametrize("tty", [False, True])
async def test_a_character_that_comes_in_pieces_is_read_whole(commands: Commands, tty: bool) -> None:
    """FR-115."""
    script = "import os, time\nfor byte in b'a\\xe2\\x82\\xac\\n': os.write(1, bytes([byte])); time.sleep(0.02)"
    process_id = await commands.python(script, tty=tty)
    pieces = await commands.pieces(process_id)
    assert "".join(piece.chunk for piece in pieces).strip() == "a€"
    assert {piece.cursor for piece in pieces}.isdisjoint({2, 3})


async def test_lines_of_wide_characters_come_through_a_terminal(commands: Commands) -> None:
    """FR-117."""
    process_id = await commands.python("for _ in range(200): print('─│┌' * 100)", tty=True)
    assert await commands.output(process_id) == ("─│┌" * 100 + "\r\n") * 200


@pytest.mark.parametrize("bytes_max", [1, 2, 3, 4, 5, 6, 7])
async def test_a_limit_cuts_no_character_and_loses_none(tmp_path: Path, own_root: Path, bytes_max: int) -> None:
    """FR-119."""
    async with Server(tmp_path, {"ws": own_root}, sandbox="off") as server:
        commands = Commands(server)
        process_id = await commands.start("printf", "a🙂é€🙂")
        pieces = await commands.pieces(process_id, max_bytes=bytes_max)
        assert "".join(piece.chunk for piece in pieces) == "a🙂é€🙂"
        assert all(len(piece.chunk.encode()) <= max(bytes_max, 4) for piece in pieces)


@pytest.mark.parametrize("tty", [False, True])
async def test_endless_output_is_bounded_and_holds_up_nobody(commands: Commands, tty: bool) -> None:
    """FR-123, FR-125."""
    process_id = await commands.start("yes", tty=tty, timeout_ms=300)
    while (report := await commands.status(process_id)).state == "running":
        assert report.output_total - report.output_retained_from <= 262_144
        await commands.server.handle(FindFiles(workspace_id="ws", pattern="*"))
        await anyio.sleep(0.01)
    report = await commands.ended(process_id)
    assert report.termination == "timeout"
    assert report.output_total - report.output_retained_from == 262_144
    piece = await commands.read(process_id, max_bytes=262_144)
    assert piece.output_lost
    assert set(piece.chunk.replace("\r", "").split("\n")) <= {"y", ""}


async def test_the_last_words_on_a_terminal_are_never_lost(commands: Commands) -> None:
    """FR-127."""
    for number in range(10):
        assert (await commands.run("echo", f"tail-{number}", tty=True))[1] == f"tail-{number}\r\n"


async def test_an_end_is_never_told_before_the_last_byte_can_be_read(commands: Commands) -> None:
    """FR-129."""
    process_id = await commands.shell("sleep 0.1; seq 1 900")
    while (await commands.status(process_id)).state == "running":
        await anyio.sleep(0.001)
    piece = await commands.read(process_id)
    assert piece.chunk == "".join(f"{number}\n" for number in range(1, 901))


async def test_carriage_returns_are_output_like_any_other(commands: Commands) -> None:
    """FR-137."""
    process_id = await commands.python("import sys\nfor i in range(500): sys.stdout.write(f'\\r{i}%')")
    assert await commands.output(process_id) == "".join(f"\r{number}%" for number in range(500))


async def test_a_command_without_a_terminal_is_interrupted_by_a_signal(commands: Commands) -> None:
    """FR-139."""
    process_id = await commands.shell("trap 'echo got-int; exit 7' INT; echo ready; while :; do sleep 0.02; done")
    await commands.until(process_id, "ready")
    await commands.terminate(process_id, signal="INT")
    assert await commands.output(process_id) == "ready\ngot-int\n"
    assert (await commands.status(process_id)).termination == "terminated"


async def test_a_root_that_is_gone_is_told_apart_from_a_program_that_is(tmp_path: Path, own_root: Path) -> None:
    """FR-097."""
    async with Server(tmp_path, {"ws": own_root}) as server:
        (own_root / "n.txt").unlink()
        (own_root / "bad-format").write_bytes(b"\0\1")
        (own_root / "bad-format").chmod(0o755)
        commands = Commands(server)
        with pytest.raises(CodespaceError) as bad_format:
            await commands.start("./bad-format")
        (own_root / "bad-format").unlink()
        own_root.rmdir()
        with pytest.raises(CodespaceError) as no_root:
            await commands.start("true")
        own_root.mkdir()
    assert bad_format.value.code == ErrorCode.PROCESS_SPAWN_FAILED
    assert no_root.value.code in (ErrorCode.PROCESS_SPAWN_FAILED, ErrorCode.FILE_OPERATION_FAILED)
    assert bad_format.value.message != no_root.value.message


async def test_no_process_of_a_command_outlives_an_orderly_end(tmp_path: Path, own_root: Path) -> None:
    """T20: one that ignores the request, one that has daemonised."""
    async with Server(tmp_path, {"ws": own_root}, sandbox="off", process_timeout_seconds=0) as server:
        commands = Commands(server)
        process_id = await commands.shell(
            "trap '' TERM; (setsid bash -c \"trap '' TERM; echo \\$\\$; sleep 300\" &); echo $$; sleep 300"
        )
        while len((await commands.read(process_id)).chunk.splitlines()) < 2:
            await anyio.sleep(0.01)
        pids = [int(pid) for pid in (await commands.read(process_id)).chunk.split()]
    assert not any(is_alive(pid) for pid in pids)
    async with Server(tmp_path, {"ws": own_root}) as server:
        report = await Commands(server).status(process_id)
        assert report.termination == "terminated"
        assert (await Commands(server).read(process_id)).chunk.split() == [str(pid) for pid in pids]
        refusal = await Commands(server).refused(ReadProcess(process_id=process_id, max_bytes=0))
        assert refusal.code == ErrorCode.OUTPUT_LIMIT
