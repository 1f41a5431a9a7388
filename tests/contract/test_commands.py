"""Commands from asking to the record of their end, on a server without a transport: contract B10.8, B10.16, A5."""

import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import anyio
import pytest

from adapters.bootstrap import CHILD_DEFAULTS
from codespace_es.command_handlers.driving import ResizeTerminal, TerminateProcess, WriteInput
from codespace_es.command_handlers.executing import ExecResult
from codespace_es.command_handlers.observing import AskProcess, ReadProcess
from codespace_es.command_handlers.patching import ApplyPatch
from codespace_es.command_handlers.reading import FindFiles, ReadFile
from codespace_es.command_handlers.reporting import ReportOperation
from codespace_es.invocation import ExecCommand
from codespace_es.vocabulary.errors import CodespaceError, ErrorCode
from support.commands import SECONDS_MAX, Commands, lines_of
from support.process_runner import children_of, processes_with
from support.server import Server

pytestmark = pytest.mark.anyio

NOBODY = "proc-00000000-0000-4000-8000-000000000000"
PATCH = "*** Begin Patch\n*** Add File: new.txt\n+new\n*** End Patch\n"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    made = tmp_path / "ws"
    made.mkdir()
    (made / "n.txt").write_text("needle\n")
    return made


@pytest.fixture
async def commands(tmp_path: Path, root: Path) -> AsyncIterator[Commands]:
    with anyio.fail_after(SECONDS_MAX):
        async with Server(tmp_path, {"ws": root}) as server:
            yield Commands(server)


async def test_a_command_is_started_read_and_known_for_ever(commands: Commands) -> None:
    """Checks 37, 73; T-U05."""
    started = await commands.exec("echo", "hello")
    assert started.process_id.startswith("proc-")
    assert started.dispatch_status == "confirmed"
    assert started.replayed is None
    assert await commands.output(started.process_id) == "hello\n"
    report = await commands.status(started.process_id)
    assert (report.state, report.termination, report.exit_code, report.eof) == ("exited", "exited", 0, True)
    assert (report.signal, report.live, report.output_total, report.descendants_killed) == (None, False, 6, None)
    again = await commands.read(started.process_id)
    assert (again.chunk, again.cursor, again.eof, again.output_lost) == ("hello\n", 6, True, False)
    assert await commands.topics(started.process_id) == ["process.spawned.v1", "process.exited.v1"]


async def test_a_handle_that_was_invented_is_not_found(commands: Commands) -> None:
    """Checks 38, 54, 79."""
    for process_id in (NOBODY, "proc-", "op-1", "", "../x", "store"):
        for command in (
            ReadProcess(process_id=process_id), AskProcess(process_id=process_id),
            TerminateProcess(process_id=process_id), ResizeTerminal(process_id=process_id, rows=2, cols=2),
            WriteInput.model_validate({"process_id": process_id, "data": "x"}),
        ):
            assert (await commands.refused(command)).code == ErrorCode.PROCESS_NOT_FOUND


async def test_what_has_ended_is_ended_again_without_an_error_and_not_driven(commands: Commands) -> None:
    """Checks 38, 54; decision 22."""
    process_id = await commands.start("true", tty=True)
    await commands.ended(process_id)
    await commands.terminate(process_id)
    await commands.terminate(process_id, signal="KILL", grace_ms=0)
    for command in (
        WriteInput.model_validate({"process_id": process_id, "data": "x"}),
        ResizeTerminal(process_id=process_id, rows=2, cols=2),
    ):
        assert (await commands.refused(command)).code == ErrorCode.PROCESS_NOT_RUNNING
    assert (await commands.status(process_id)).termination == "exited"


async def test_both_outputs_are_one_stream_in_order(commands: Commands) -> None:
    """Check 39."""
    process_id = await commands.shell("echo one; echo two >&2; echo three")
    assert await commands.output(process_id) == "one\ntwo\nthree\n"


async def test_a_live_command_occupies_its_workspace_and_nothing_else(commands: Commands) -> None:
    """Checks 40, 41, 74; T-U10."""
    process_id = await commands.start("sleep", "300")
    report = await commands.status(process_id)
    assert (report.state, report.live, report.termination, report.exit_code, report.eof) == (
        "running", True, None, None, False
    )
    await commands.server.handle(ReadFile(workspace_id="ws", path="n.txt"))
    await commands.server.handle(FindFiles(workspace_id="ws", pattern="*"))
    for command in (
        ApplyPatch(workspace_id="ws", patch=PATCH), ExecCommand(workspace_id="ws", command=["true"]),
    ):
        refusal = await commands.refused(command)
        assert (refusal.code, refusal.detail["process_id"]) == (ErrorCode.WORKSPACE_BUSY, process_id)
    await commands.terminate(process_id)
    report = await commands.ended(process_id)
    assert (report.termination, report.exit_code, report.signal) == ("terminated", None, None)
    assert (await commands.run("true"))[0].exit_code == 0
    await commands.server.handle(ApplyPatch(workspace_id="ws", patch=PATCH))
    assert await commands.topics(process_id) == [
        "process.spawned.v1", "process.end_requested.v1", "process.exited.v1",
    ]


async def test_whoever_has_read_the_end_finds_the_workspace_free(commands: Commands) -> None:
    for _ in range(10):
        _, output = await commands.run("echo", "x")
        assert output == "x\n"


async def test_input_that_is_refused_is_not_on_record(commands: Commands) -> None:
    process_id = await commands.start("sleep", "600")
    for _ in range(16):
        await commands.write(process_id, "x" * 1_000_000)
    written = await commands.topics(process_id)
    refusal = await commands.refused(WriteInput.model_validate({"process_id": process_id, "data": "x" * 1_000_000}))
    assert (refusal.code, await commands.topics(process_id)) == (ErrorCode.RESOURCE_QUEUE_FULL, written)
    await commands.write(process_id, "", eof=True)
    closed = await commands.topics(process_id)
    refusal = await commands.refused(WriteInput.model_validate({"process_id": process_id, "data": "late"}))
    assert (refusal.code, await commands.topics(process_id)) == (ErrorCode.STDIN_CLOSED, closed)
    await commands.terminate(process_id)
    await commands.ended(process_id)


async def test_what_is_written_is_read_in_order_and_recorded_without_its_content(commands: Commands) -> None:
    """Check 42; FR-103, FR-109."""
    process_id = await commands.start("cat")
    async with anyio.create_task_group() as tasks:
        for number in range(50):
            tasks.start_soon(commands.write, process_id, f"hunter-two {number}\n")
    await commands.write(process_id, "x" * 1_000_000 + "\n")
    await commands.write(process_id, "", eof=True)
    refusal = await commands.refused(WriteInput.model_validate({"process_id": process_id, "data": "late"}))
    assert refusal.code in (ErrorCode.STDIN_CLOSED, ErrorCode.PROCESS_NOT_RUNNING)
    report = await commands.ended(process_id)
    assert report.output_total == sum(len(f"hunter-two {number}\n") for number in range(50)) + 1_000_001
    assert report.output_head is not None
    assert report.output_head.startswith("".join(f"hunter-two {number}\n" for number in range(50)))
    sent = [entry.event for entry in await commands.server.log.read_stream(process_id)][1:-1]
    assert [event.size_bytes for event in sent][-2:] == [1_000_001, 0]  # type: ignore[attr-defined]  # each is an InputSent
    assert "hunter" not in "".join(event.model_dump_json() for event in sent)


async def test_only_the_end_of_a_long_output_is_kept_and_its_beginning_beside_it(commands: Commands) -> None:
    """Check 43; FR-119, FR-121."""
    report, _ = await commands.run("bash", "-c", "echo FIRST-ERROR; seq 1 60000; echo LAST-LINE; exit 3")
    piece = await commands.read(report.process_id, max_bytes=262_144)
    assert report.exit_code == 3
    assert report.output_head is not None
    assert report.output_head.startswith("FIRST-ERROR\n1\n2\n")
    assert len(piece.chunk.encode()) <= 262_144
    assert piece.chunk.endswith("60000\nLAST-LINE\n")
    assert (piece.output_lost, piece.retained_from) == (True, report.output_total - 262_144)
    beyond = await commands.read(report.process_id, report.output_total + 5)
    assert (beyond.chunk, beyond.cursor, beyond.eof) == ("", report.output_total + 5, True)


async def test_a_time_limit_keeps_what_was_printed_and_is_told_at_the_end(tmp_path: Path, root: Path) -> None:
    """Check 44; T-U23; FR-087."""
    with anyio.fail_after(SECONDS_MAX):
        async with Server(tmp_path, {"ws": root}, process_timeout_seconds=1) as server:
            commands = Commands(server)
            process_id = await commands.shell("echo step-7-ok; sleep 300", timeout_ms=999_999)
            assert await commands.until(process_id, "ok") == "step-7-ok\n"
            refusal = await commands.refused(ReadProcess(process_id=process_id, cursor=10, wait_ms=30_000))
            assert (refusal.code, refusal.detail["process_id"]) == (ErrorCode.TIMEOUT, process_id)
            report = await commands.status(process_id)
            assert (report.termination, report.exit_code, report.signal) == ("timeout", None, None)
            read = await commands.read(process_id)
            assert (read.chunk, read.eof) == ("step-7-ok\n", True)
            silent = await commands.start("sleep", "300", timeout_ms=50)
            assert (await commands.refused(ReadProcess(process_id=silent, wait_ms=30_000))).code == ErrorCode.TIMEOUT
    assert [entry.event.TOPIC for entry in await _reopened(tmp_path, root, process_id)][1:] == [
        "process.end_requested.v1", "process.exited.v1",
    ]


async def _reopened(tmp_path: Path, root: Path, process_id: str) -> Any:
    async with Server(tmp_path, {"ws": root}) as server:
        return await server.log.read_stream(process_id)  # type: ignore[arg-type]  # an id names its stream


@pytest.mark.parametrize(("policy", "code"), [
    ({"profile": "read-only"}, ErrorCode.UNAUTHORIZED), ({"environment": "linux-container"}, ErrorCode.UNAUTHORIZED),
])
async def test_where_nothing_may_run_nothing_runs(
    tmp_path: Path, root: Path, policy: dict[str, str], code: ErrorCode
) -> None:
    """Checks 45, 46, 79; T-U08: in the contract's order."""
    async with Server(tmp_path, {"ws": root}, **policy) as server:
        commands = Commands(server)
        refusal = await commands.refused(ExecCommand(workspace_id="ws", command=[]))
        assert refusal.code == code
        assert "operation_id" not in refusal.detail
        refusal = await commands.refused(ExecCommand(workspace_id="nowhere", command=[]))
        assert refusal.code == ErrorCode.WORKSPACE_NOT_FOUND


@pytest.mark.parametrize("argv", [[], [""], ["echo", "a\0b"], ["echo", "\ud800"]])
async def test_what_is_no_command_is_refused_and_holds_nothing(commands: Commands, argv: list[str]) -> None:
    """T-U07."""
    refusal = await commands.refused(ExecCommand(workspace_id="ws", command=argv, operation_key="k"))
    assert refusal.code == ErrorCode.INVALID_COMMAND
    assert (await commands.exec("true", operation_key="k")).replayed is None


@pytest.mark.parametrize("tty", [False, True])
async def test_what_cannot_be_started_says_why_and_holds_nothing(commands: Commands, root: Path, tty: bool) -> None:
    """T-U07; FR-097."""
    (root / "not-exec").write_text("#!/bin/sh\n")
    (root / "a-dir").mkdir()
    (root / "no-interpreter").write_text("#!/nowhere/sh\n")
    (root / "no-interpreter").chmod(0o755)
    messages = set()
    for argv in (["no-such-prog"], ["./not-exec"], ["./a-dir"], ["./no-interpreter"], ["echo", "x" * 1_000_000]):
        refusal = await commands.refused(ExecCommand(workspace_id="ws", command=argv, tty=tty))
        assert refusal.code == ErrorCode.PROCESS_SPAWN_FAILED
        assert refusal.detail["process_id"].startswith("proc-")
        assert await commands.topics(refusal.detail["process_id"]) == ["process.not_started.v1"]
        asked = await commands.refused(AskProcess(process_id=refusal.detail["process_id"]))
        assert asked.code == ErrorCode.PROCESS_NOT_FOUND
        messages.add(refusal.message)
    assert len(messages) == 5
    assert (await commands.run("true"))[0].exit_code == 0


@pytest.mark.parametrize("tty", [False, True])
@pytest.mark.parametrize(("script", "termination", "code", "number"), [
    ("exit 0", "exited", 0, None), ("exit 200", "exited", 200, None),
    ("kill -KILL $$", "signaled", None, signal.SIGKILL), ("kill -SEGV $$", "signaled", None, signal.SIGSEGV),
    ("kill -TERM $$", "signaled", None, signal.SIGTERM), ("kill -34 $$", "signaled", None, 34),
])
async def test_each_end_has_its_own_truth(  # noqa: PLR0917 - they are the case
    commands: Commands, script: str, termination: str, code: int | None, number: int | None, tty: bool
) -> None:
    """FR-091; T-U23."""
    report, _ = await commands.run("bash", "-c", script, tty=tty)
    assert (report.termination, report.exit_code) == (termination, code)
    assert (report.signal.number if report.signal else None) == number
    name = report.signal.name if report.signal else None
    assert name == (signal.Signals(number).name if number in signal.valid_signals() and number != 34 else None)


async def test_a_terminal_has_its_size_and_another_one_when_asked(commands: Commands) -> None:
    """Checks 52, 53, 54."""
    process_id = await commands.shell(
        "[ -t 0 ] && echo terminal $TERM; stty size; trap 'stty size' WINCH; echo ready; while :; do sleep 0.05; done",
        tty=True,
    )
    assert "terminal xterm\r\n24 80\r\n" in await commands.until(process_id, "ready")
    await commands.resize(process_id, 40, 120)
    await commands.until(process_id, "40 120")
    for rows, cols in ((0, 1), (1, 0), (65_536, 1)):
        refusal = await commands.refused(ResizeTerminal(process_id=NOBODY, rows=rows, cols=cols))
        assert refusal.code == ErrorCode.INVALID_COMMAND
    await commands.terminate(process_id)
    await commands.ended(process_id)
    piped = await commands.start("sleep", "300")
    assert (await commands.refused(ResizeTerminal(process_id=piped, rows=2, cols=2))).code == ErrorCode.PROCESS_NOT_TTY


async def test_a_key_starts_one_command(commands: Commands, root: Path) -> None:
    argv = ["bash", "-c", "echo x >> count; sleep 300"]
    first = await commands.exec(*argv, operation_key="k")
    live = await commands.exec(*argv, operation_key="k", work_id="work-1")
    while not lines_of(root / "count"):
        await anyio.sleep(0.005)
    await commands.terminate(first.process_id)
    await commands.ended(first.process_id)
    ended = await commands.exec(*argv, operation_key="k")
    assert (live.process_id, live.replayed, live.work_id) == (first.process_id, True, "work-1")
    assert (ended.process_id, ended.replayed, ended.dispatch_status) == (first.process_id, True, "confirmed")
    for other in (
        ExecCommand(workspace_id="ws", command=["true"], operation_key="k"),
        ExecCommand(workspace_id="ws", command=argv, tty=True, operation_key="k"),
        ApplyPatch(workspace_id="ws", patch=PATCH, operation_key="k"),
    ):
        assert (await commands.refused(other)).code == ErrorCode.OPERATION_KEY_CONFLICT
    assert lines_of(root / "count") == 1


async def test_two_calls_with_one_key_at_once_start_one_command(commands: Commands, root: Path) -> None:
    """A quick one and one that lives on: the second caller waits in the queue, and is told of the first's."""
    async def ask(answers: list[ExecResult], number: int, seconds: str) -> None:
        script = f"echo x >> count{number}; sleep {seconds}"
        answers.append(await commands.exec("bash", "-c", script, operation_key=f"k{number}"))

    for number, seconds in enumerate(("0", "300")):
        answers: list[ExecResult] = []
        async with anyio.create_task_group() as tasks:
            for _ in range(4):
                tasks.start_soon(ask, answers, number, seconds)
        assert len({answer.process_id for answer in answers}) == 1
        assert [bool(answer.replayed) for answer in answers].count(False) == 1
        await commands.terminate(answers[0].process_id)
        await commands.ended(answers[0].process_id)
    assert lines_of(root / "count0") == 1


async def test_a_key_that_started_nothing_says_so_again(commands: Commands) -> None:
    request = ExecCommand(workspace_id="ws", command=["no-such-prog"], operation_key="k")
    first, again = await commands.refused(request), await commands.refused(request)
    assert first.code == again.code == ErrorCode.PROCESS_SPAWN_FAILED
    assert first.detail["process_id"] == again.detail["process_id"]
    assert first.message == again.message


async def test_a_command_sees_no_variable_but_those_it_is_given(
    tmp_path: Path, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """FR-135."""
    monkeypatch.setenv("OPERATORS_SECRET", "s3cret")
    monkeypatch.setenv("FORCE_COLOR", "1")
    with anyio.fail_after(SECONDS_MAX):
        async with Server(tmp_path, {"ws": root}, env={"MODE": "test"}) as server:
            commands = Commands(server)
            (_, piped), (_, on_terminal) = await commands.run("env"), await commands.run("env", tty=True)
    given = dict(line.split("=", 1) for line in piped.splitlines())
    shown = dict(line.split("=", 1) for line in on_terminal.splitlines())
    assert set(given) <= {"PATH", "HOME", "MODE", "TMPDIR", "CODESPACE_EXEC", "PWD", *CHILD_DEFAULTS}
    assert set(shown) - set(given) == {"TERM"}
    assert (given["MODE"], shown["TERM"]) == ("test", "xterm")
    assert "s3cret" not in piped + on_terminal


async def test_as_many_live_as_may_and_the_next_one_leaves_nothing(tmp_path: Path, root: Path) -> None:
    """T-U14; FR-133."""
    other = tmp_path / "other"
    other.mkdir()
    mark = f"mark-{os.getpid()}-{tmp_path.name}"
    with anyio.fail_after(SECONDS_MAX):
        async with Server(tmp_path, {"ws": root, "other": other}, processes_max=3, live_process="shared",
                          sandbox="off") as server:
            commands = Commands(server)
            outcomes: list[str] = []
            refusals: list[CodespaceError] = []

            async def start() -> None:
                try:
                    outcomes.append(await commands.start("bash", "-c", f"exec -a {mark} sleep 300"))
                except CodespaceError as refusal:
                    refusals.append(refusal)

            async with anyio.create_task_group() as tasks:
                for _ in range(12):
                    tasks.start_soon(start)
            assert len(outcomes) == 3
            assert {refusal.code for refusal in refusals} == {ErrorCode.WORKSPACE_BUSY}
            assert all("3 are allowed" in refusal.message for refusal in refusals)
            while len(processes_with(mark)) < 3:  # let go, they become what they were asked to be
                await anyio.sleep(0.005)
            assert len(processes_with(mark)) == 3
            assert len(await server.log.open_items(kind="process")) == 3
            await commands.server.handle(ApplyPatch(workspace_id="ws", patch=PATCH))
            await commands.terminate(outcomes[0])
            await commands.ended(outcomes[0])
            assert await commands.start("sleep", "300", workspace_id="other")
    assert os.path.exists(root / "new.txt")


async def test_requests_are_served_in_order_and_those_behind_a_live_command_are_refused(
    commands: Commands, root: Path
) -> None:
    """T-U06, T-U10."""
    world = commands.server.world
    key = world.workspaces["ws"].key
    held = await world.leases.acquire(key, refuse=_refuse_nothing, on_wait=_say_nothing)
    answers: list[tuple[str, str]] = []

    async def patch(name: str) -> None:
        text = PATCH.replace("new.txt", f"{name}.txt")
        try:
            await commands.server.handle(ApplyPatch(workspace_id="ws", patch=text))
            answers.append((name, "applied"))
        except CodespaceError as refusal:
            answers.append((name, refusal.code))

    async def run() -> None:
        answers.append(("command", (await commands.exec("sleep", "300")).dispatch_status))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(patch, "first")
        await anyio.sleep(0.05)
        async with anyio.create_task_group() as dropped:
            dropped.start_soon(patch, "dropped")
            await anyio.sleep(0.05)
            dropped.cancel_scope.cancel()
        tasks.start_soon(run)
        await anyio.sleep(0.05)
        tasks.start_soon(patch, "behind")
        await anyio.sleep(0.05)
        held.release()
    assert answers == [("first", "applied"), ("command", "confirmed"), ("behind", "WORKSPACE_BUSY")]
    assert sorted(each.name for each in root.iterdir()) == ["first.txt", "n.txt"]


async def test_a_start_that_fails_lets_the_next_one_go(commands: Commands) -> None:
    """T-U07, T-U10."""
    async with anyio.create_task_group() as tasks:
        for _ in range(3):
            tasks.start_soon(commands.refused, ExecCommand(workspace_id="ws", command=["no-such-prog"]))
        tasks.start_soon(commands.server.handle, ApplyPatch(workspace_id="ws", patch=PATCH))


async def test_the_queue_has_an_end(commands: Commands) -> None:
    """T-U10: 64 wait, for commands and patches together; the next one is refused, and a place left is taken again."""
    world = commands.server.world
    held = await world.leases.acquire(world.workspaces["ws"].key, refuse=_refuse_nothing, on_wait=_say_nothing)
    async with anyio.create_task_group() as tasks:
        for _ in range(64):
            tasks.start_soon(commands.server.handle, ExecCommand(workspace_id="ws", command=["sleep", "300"]))
        await anyio.sleep(0.2)
        refusal = await commands.refused(ExecCommand(workspace_id="ws", command=["true"]))
        assert refusal.code == ErrorCode.RESOURCE_QUEUE_FULL
        tasks.cancel_scope.cancel()
    held.release()
    assert (await commands.run("true"))[0].exit_code == 0
    assert not await world.log.open_items(kind="process")


async def _refuse_nothing() -> None:
    return None


async def _say_nothing(_seconds: float) -> None:
    return None


async def test_a_key_of_a_command_asked_for_as_an_operation_names_the_command(commands: Commands) -> None:
    """Decision 15."""
    started = await commands.exec("true", operation_key="k")
    refusal = await commands.refused(ReportOperation(operation_key="k"))
    assert refusal.code == ErrorCode.OPERATION_NOT_FOUND
    assert started.process_id in refusal.message


@pytest.mark.soak
async def test_a_thousand_commands_leave_nothing_behind(tmp_path: Path, root: Path) -> None:
    """No descriptor, no child, no zombie, no terminal, and no memory that grows with them."""

    def resources() -> tuple[int, int]:
        return len(os.listdir("/proc/self/fd")), len([child for child in children_of(os.getpid()) if child[1] == "Z"])

    def resident() -> int:
        return int(Path("/proc/self/statm").read_text().split()[1]) * 4096

    async with Server(tmp_path, {"ws": root}) as server:
        commands = Commands(server)
        before, size = (0, 0), 0
        for number in range(1_000):
            report, output = await commands.run("echo", str(number), tty=number % 2 == 0)
            assert (report.exit_code, output.strip()) == (0, str(number))
            if number == 100:
                before, size = resources(), resident()
        assert resources() == before
        assert resident() - size < 32 * 1024 * 1024
