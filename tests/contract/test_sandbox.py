"""Confined commands are commands: they end, are ended and are counted at every level as the runner promises."""

import errno
import os
import signal
import socket
from collections.abc import AsyncIterator
from pathlib import Path

import anyio
import pytest

from codespace_es.ports.runner import NotStartedError
from support.escape import Confined, Setting, confined, place, users
from support.process_runner import until_output, whole_output

pytestmark = pytest.mark.anyio

LEVELS = [Setting(level, is_root) for level in (3, 2, 1) for is_root in users()]
CONFINING = [setting for setting in LEVELS if setting.level > 1]


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    """Share a runner between the tests of a level."""
    return "asyncio"


@pytest.fixture(scope="module")
async def opened(request: pytest.FixtureRequest) -> AsyncIterator[Confined]:
    setting: Setting = request.param
    with place(setting) as where:
        async with confined(setting, where) as opened:
            with anyio.fail_after(30):
                level = (await opened.runner.sandbox()).level
            if level != setting.level:
                pytest.skip(f"level {setting.level} doesn't work on this machine")
            yield opened


@pytest.fixture
async def here(opened: Confined) -> AsyncIterator[Confined]:
    """Have a place of the test's own."""
    with anyio.fail_after(30), place(opened.setting) as where:
        own = opened.at(where)
        yield own
        await own.end_all()


def at(settings: list[Setting]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("opened", settings, indirect=True, ids=str)


at_each_level = at(LEVELS)
at_each_confining_level = at(CONFINING)
at_level_3 = at([setting for setting in LEVELS if setting.level == 3])
at_level_2 = at([setting for setting in LEVELS if setting.level == 2])
at_level_1 = at([setting for setting in LEVELS if setting.level == 1])


# How it ends


@at_each_level
@pytest.mark.parametrize("code", [0, 1, 3, 126, 127, 128, 145, 148, 255])
async def test_an_exit_code_is_told_as_it_is(here: Confined, code: int) -> None:
    """145 and 148 are 128 + SIGCHLD and SIGTSTP on x86 and arm, which end nobody."""
    end, _ = await here.ended("sh", "-c", f"exit {code}")
    assert end.wait_status is not None
    assert os.waitstatus_to_exitcode(end.wait_status) == code


@at_each_level
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGSEGV, signal.SIGPIPE])
async def test_an_end_by_a_signal_is_told_as_one(here: Confined, number: signal.Signals) -> None:
    end, _ = await here.ended("sh", "-c", f"kill -{number.value} $$; exit 1")
    assert end.wait_status is not None
    assert os.waitstatus_to_exitcode(end.wait_status) == -number


@at_level_3
@pytest.mark.parametrize("tty", [False, True])
async def test_a_sandbox_that_fails_after_the_gate_isnt_taken_for_the_command(here: Confined, tty: bool) -> None:
    lease = here._locks.take("late")
    child = await here.runner.start(here.command("sh", "-c", "exit 1", tty=tty), lease=lease)
    lease.release()
    here.root.rename(here.root.with_name("moved"))
    end = await (await child.go()).wait()
    here.root.with_name("moved").rename(here.root)
    assert end.wait_status is not None
    assert os.waitstatus_to_exitcode(end.wait_status) == 126
    assert end.tail.startswith(b"bwrap: ")


@at_each_level
@pytest.mark.parametrize("tty", [False, True])
async def test_a_request_to_end_reaches_the_command_itself(here: Confined, tty: bool) -> None:
    process, _ = await here.start(
        "bash", "-c", "trap 'echo warned; exit 5' TERM; echo ready; while :; do sleep 0.05; done", tty=tty)
    await until_output(process, b"ready")
    await process.end(signal=signal.SIGTERM, grace_ms=20_000)
    end = await process.wait()
    assert end.wait_status is not None
    assert os.waitstatus_to_exitcode(end.wait_status) == 5
    assert b"warned" in end.tail


@at_each_level
@pytest.mark.parametrize("tty", [False, True])
async def test_a_command_that_is_ended_before_it_has_begun_gets_no_time(here: Confined, tty: bool) -> None:
    """While it is still being confined, what is asked to end is what confines it."""
    process, _ = await here.start("sh", "-c", "sleep 0.4; echo begun > begun", tty=tty)
    await process.end(signal=signal.SIGTERM, grace_ms=20_000)
    end = await process.wait()
    assert end.wait_status is not None
    assert os.waitstatus_to_exitcode(end.wait_status) < 0
    assert not (here.root / "begun").exists()


@at_each_level
async def test_a_command_that_ignores_the_request_is_killed(here: Confined) -> None:
    process, _ = await here.start("bash", "-c", "trap '' TERM; echo ready; while :; do sleep 0.05; done")
    await until_output(process, b"ready")
    await process.end(signal=signal.SIGTERM, grace_ms=50)
    end = await process.wait()
    assert end.wait_status is not None
    assert os.waitstatus_to_exitcode(end.wait_status) == -signal.SIGKILL


@at_each_level
async def test_what_a_command_leaves_running_is_ended_and_counted_alike(here: Confined) -> None:
    end, _ = await here.ended("bash", "-c", "for i in 1 2 3; do setsid sleep 600 & done; sleep 0.1; exit 3")
    assert end.wait_status is not None
    assert (os.waitstatus_to_exitcode(end.wait_status), end.swept) == (3, 3)


@at_each_level
async def test_what_is_left_may_finish_within_its_grace(here: Confined) -> None:
    end, _ = await here.ended("bash", "-c", "(sleep 0.2; echo late) & exit 0")
    assert (end.tail, end.swept) == (b"late\n", 0)


@at_each_level
async def test_a_command_that_is_ended_alone_leaves_nobody_to_count(here: Confined) -> None:
    process, _ = await here.start("sh", "-c", "echo ready; exec sleep 600")
    await until_output(process, b"ready")
    await process.end(signal=signal.SIGKILL, grace_ms=0)
    assert (await process.wait()).swept == 0


@at_each_level
async def test_a_child_that_is_abandoned_at_its_gate_has_run_nothing(here: Confined) -> None:
    lease = here._locks.take("abandoned")
    child = await here.runner.start(here.command("touch", "ran"), lease=lease)
    await child.abandon()
    assert not (here.root / "ran").exists()


@at_each_level
@pytest.mark.parametrize("tty", [False, True])
async def test_a_signal_to_its_own_group_reaches_nobody_else(here: Confined, tty: bool) -> None:
    script = "trap '' TERM INT HUP QUIT; for s in TERM INT HUP QUIT; do kill -$s 0; done; sleep 0.1; exit 9"
    end, _ = await here.ended("bash", "-c", script, tty=tty)
    assert end.wait_status is not None
    assert os.waitstatus_to_exitcode(end.wait_status) == 9


# Streams


@at_each_level
async def test_input_and_output_pass_through(here: Confined) -> None:
    process, _ = await here.start("cat", stdin="pipe")
    await process.write(b"x" * 200_000, is_eof=True)
    assert len(await whole_output(process)) == 200_000


@at_each_level
async def test_only_the_standard_descriptors_are_open(here: Confined) -> None:
    end, _ = await here.ended("sh", "-c", "exec ls /proc/self/fd")
    assert end.tail.split() == [b"0", b"1", b"2", b"3"], "3 is the listing's own"


@at_each_level
async def test_a_terminal_has_its_size_and_tells_of_another(here: Confined) -> None:
    process, _ = await here.start(
        "bash", "-c", "trap 'stty size </dev/tty; exit' WINCH; stty size; echo ready; while :; do sleep 0.05; done",
        tty=True)
    await until_output(process, b"24 200\r\nready")
    await process.resize(50, 132)
    await until_output(process, b"50 132")


@at_each_level
async def test_an_interrupt_typed_at_a_terminal_reaches_the_command(here: Confined) -> None:
    process, _ = await here.start("bash", "-c", "trap 'exit 7' INT; echo ready; while :; do sleep 0.05; done", tty=True)
    await until_output(process, b"ready")
    await process.write(b"\x03", is_eof=False)
    end = await process.wait()
    assert end.wait_status is not None
    assert os.waitstatus_to_exitcode(end.wait_status) == 7


@at_each_level
async def test_the_command_leads_the_session_of_its_terminal(here: Confined) -> None:
    end, _ = await here.ended("sh", "-c", "ps -o sid=,pgid=,tpgid= -p $$; echo $$ >/dev/tty", tty=True)
    assert len(set(end.tail.split())) == 1, "session, group, foreground group and process are one"


# What was asked for


@at_level_1
async def test_requiring_a_sandbox_where_none_works_starts_nothing(here: Confined) -> None:
    with pytest.raises(NotStartedError, match="requires one"):
        await here.start("touch", "ran", sandbox="require")
    assert not (here.root / "ran").exists()


@at_each_confining_level
async def test_switching_the_sandbox_off_is_told(here: Confined) -> None:
    (here.where / "outside").chmod(0o777)
    end, report = await here.ended("touch", str(here.where / "outside" / "new"), sandbox="off")
    assert (end.wait_status, report.level, report.kind, report.is_network_enforced) == (0, 1, "none", False)
    assert (here.where / "outside" / "new").exists()


@at_each_confining_level
async def test_an_enabled_network_is_the_hosts(here: Confined) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        script = f"exec 3<>/dev/tcp/127.0.0.1/{server.getsockname()[1]}"
        assert (await here.ended("bash", "-c", script, is_network_enabled=True))[0].wait_status == 0
        assert (await here.ended("bash", "-c", script, is_network_enabled=False))[0].wait_status != 0


@at_each_confining_level
async def test_what_the_environment_names_is_kept(here: Confined) -> None:
    given = {"HOME": str(here.root), "TMPDIR": str(here.root), "ODD": "a=b\nc ö"}
    end, _ = await here.ended("sh", "-c", 'printf %s "$HOME|$TMPDIR|$ODD"', environment=given)
    assert end.tail.decode() == f"{here.root}|{here.root}|a=b\nc ö"


@at_level_3
async def test_a_preloaded_library_gets_no_hold_of_what_confines_the_command(here: Confined) -> None:
    """The loader complains once a program that it can't preload for: the command complains, bubblewrap doesn't."""
    end, _ = await here.ended("/bin/true", environment={"LD_PRELOAD": "/missing.so"})
    assert end.tail.count(b"/missing.so") == 1


@at_level_3
async def test_nothing_of_the_environment_stands_in_the_list_of_processes(here: Confined) -> None:
    process, _ = await here.start("sh", "-c", "echo ready; exec sleep 600", environment={"TOKEN": "very-secret"})
    await until_output(process, b"ready")
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                assert b"very-secret" not in (entry / "cmdline").read_bytes()
            except OSError:
                continue
    await process.end(signal=signal.SIGKILL, grace_ms=0)


@at_level_3
async def test_a_program_out_of_the_commands_sight_isnt_started(here: Confined) -> None:
    program = here.where / "hidden" / "program"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    with pytest.raises(NotStartedError, match="hidden from commands") as refusal:
        await here.start(str(program))
    assert refusal.value.errno == errno.ENOENT


@at_level_3
async def test_a_hidden_directory_in_the_workspace_is_hidden_too(here: Confined) -> None:
    (here.root / "state").mkdir()
    (here.root / "state" / "secret").write_text("secret")
    end, _ = await here.ended(
        "sh", "-c", "ls state; touch state/new; rmdir state", hidden_paths=(str(here.root / "state"),))
    assert b"secret" not in end.tail
    assert os.listdir(here.root / "state") == ["secret"]


@at_each_confining_level
async def test_a_hidden_file_cant_be_read(here: Confined) -> None:
    hidden = here.where / "outside" / "token"
    hidden.write_text("secret")
    hidden.chmod(0o644)
    end, _ = await here.ended("cat", str(hidden))
    assert end.tail == b"secret"
    end, _ = await here.ended("cat", str(hidden), hidden_paths=(str(hidden),))
    assert (end.wait_status != 0, b"secret" in end.tail) == (True, False)


@at_level_3
async def test_a_workspace_in_a_hidden_directory_is_all_that_is_seen_of_it(here: Confined) -> None:
    end, _ = await here.ended("sh", "-c", "ls ..; touch new", hidden_paths=(str(here.where),))
    assert (end.wait_status, end.tail) == (0, b"root\n")
    assert (here.root / "new").exists()


@at_level_3
async def test_a_protected_path_that_cant_be_protected_is_owned_up_to(here: Confined) -> None:
    (here.root / "link").symlink_to("/etc")
    _, report = await here.ended("true", read_only_paths=(".git", "link", "missing", ".git/hooks"))
    said = [gap for gap in report.gaps if str(here.root) in gap]
    assert said == [
        f"writing to {here.root}/link: it is missing or a link",
        f"writing to {here.root}/missing: it is missing or a link",
        f"putting another {here.root}/.git/hooks in its place, by renaming a folder above it",
    ]


@at_level_2
async def test_the_private_directory_ends_with_the_command(here: Confined) -> None:
    script = 'mkdir -p "$HOME/deep"; ln -s / "$HOME/deep/link"; touch "$HOME/deep/file"; printf %s "$HOME"'
    end, _ = await here.ended("sh", "-c", script)
    home = Path(end.tail.decode())
    assert home.is_absolute()
    assert not home.exists()
    assert Path("/etc").exists()


@at_each_confining_level
async def test_the_machines_report_is_the_commands(here: Confined) -> None:
    _, report = await here.ended("true")
    assert report == await here.runner.sandbox()
    assert (report.level, report.is_network_enforced) == (here.setting.level, True)
