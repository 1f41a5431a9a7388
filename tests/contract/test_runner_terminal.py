"""The zoo of terminals: sizes, signals, long lines, ends of input and hang-ups, with real programs on real terminals.

bash takes a controlling terminal by itself, so what asks for one here is Python or a plain shell.
"""

import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import anyio
import pytest

from codespace_es.ports.runner import LiveProcess
from support.process_runner import Locks, Workshop, own_runner, processes_with, until_output, whole_output
from support.system_python import PYTHON

pytestmark = pytest.mark.anyio

MARK = f"terminals-of-{os.getpid()}"


@pytest.fixture
async def workshop(tmp_path: Path) -> AsyncIterator[Workshop]:
    with anyio.fail_after(30):
        async with own_runner(tmp_path) as runner:
            yield Workshop(runner, tmp_path, Locks(tmp_path / "locks"))
        assert processes_with(MARK) == []


async def python(workshop: Workshop, script: str) -> LiveProcess:
    return await workshop.run(PYTHON, "-u", "-c", script, tty=True, environment={"MARK": MARK})


async def exit_code(process: LiveProcess) -> int:
    status = (await process.wait()).wait_status
    assert status is not None
    return os.waitstatus_to_exitcode(status)


async def test_the_terminal_controls_its_program_and_has_the_asked_size(workshop: Workshop) -> None:
    process = await python(workshop, (
        "import os; tty = os.open('/dev/tty', os.O_RDWR); s = os.get_terminal_size()\n"
        "print(s.lines, s.columns, os.isatty(0), os.isatty(1), os.isatty(2), os.getsid(0) == os.getpid(),\n"
        "      os.tcgetpgrp(0) == os.getpgrp(), os.ttyname(0) == os.ttyname(tty) or os.ttyname(tty))"))
    output = await whole_output(process)
    assert output.split()[:7] == [b"24", b"80", b"True", b"True", b"True", b"True", b"True"]
    assert await exit_code(process) == 0


async def test_a_resize_reaches_the_program_as_a_signal(workshop: Workshop) -> None:
    process = await python(workshop, (
        "import os, signal\n"
        "signal.signal(signal.SIGWINCH, lambda *_: print('now', *os.get_terminal_size()))\n"
        "print('ready')\nwhile True: signal.pause()"))
    await until_output(process, b"ready")
    await process.resize(50, 132)
    await until_output(process, b"now 132 50")
    await process.end(signal=signal.SIGTERM, grace_ms=20_000)
    assert await exit_code(process) == -signal.SIGTERM
    await process.resize(1, 1)


async def test_an_interrupt_character_interrupts(workshop: Workshop) -> None:
    process = await python(workshop, "import time\nprint('ready')\ntime.sleep(600)")
    await until_output(process, b"ready")
    await process.write(b"\x03", is_eof=False)
    assert await exit_code(process) == -signal.SIGINT


async def test_input_is_echoed_unless_the_program_turns_that_off(workshop: Workshop) -> None:
    process = await workshop.run("cat", tty=True)
    await process.write(b"abc\n", is_eof=True)
    assert (await process.wait()).tail == b"abc\r\nabc\r\n"
    process = await workshop.run("sh", "-c", "stty -echo; echo ready; read secret; echo done", tty=True)
    await until_output(process, b"ready")
    await process.write(b"hunter-two\n", is_eof=False)
    end = await process.wait()
    assert b"done" in end.tail
    assert b"hunter" not in end.tail


@pytest.mark.parametrize("typed", [b"", b"whole line\n", b"half a line"])
async def test_the_end_of_input_is_one_end_wherever_the_line_stands(workshop: Workshop, typed: bytes) -> None:
    script = "stty -echo; echo ready; wc -c; cat; exit 9"
    process = await workshop.run("sh", "-c", script, tty=True)
    await until_output(process, b"ready")
    await process.write(typed, is_eof=True)
    await until_output(process, b"%d\r\n" % len(typed))
    await process.write(b"and more\n", is_eof=True)
    end = await process.wait()
    assert end.tail == b"ready\r\n%d\r\nand more\r\n" % len(typed)


@pytest.mark.parametrize("size", [4094, 4095, 4096, 6000, 20_000, 300_000])
async def test_a_long_line_reaches_a_cooked_terminal_whole(workshop: Workshop, size: int) -> None:
    script = ("import sys, hashlib, termios\n"
              "a = termios.tcgetattr(0); a[3] &= ~termios.ECHO; termios.tcsetattr(0, termios.TCSANOW, a)\n"
              "print('ready')\ncontent = sys.stdin.buffer.read()\n"
              "print(len(content), content.count(b'x'), content[-6:])")
    process = await python(workshop, script)
    await until_output(process, b"ready")
    await process.write(b"x" * size + b"\nlast\n", is_eof=True)
    output = await whole_output(process)
    assert b"%d %d b'\\nlast\\n'" % (size + 6, size) in output
    await process.wait()


async def test_a_raw_terminal_gets_every_byte(workshop: Workshop) -> None:
    script = ("import sys, os, tty\ntty.setraw(0)\nprint('ready')\ncount = 0; seen = set()\n"
              "while count < 256 * 100:\n    c = os.read(0, 4096); count += len(c); seen |= set(c)\n"
              "print(count, len(seen))")
    process = await python(workshop, script)
    await until_output(process, b"ready")
    await process.write(bytes(range(256)) * 100, is_eof=False)
    assert b"25600 256" in await whole_output(process)
    await process.wait()


async def test_a_program_that_ignores_the_hang_up_is_swept(workshop: Workshop) -> None:
    process = await workshop.shell(
        "trap '' HUP; (trap '' HUP TERM; echo ready; sleep 600) & sleep 0.2; exit 3", tty=True,
        environment={"MARK": MARK})
    end = await process.wait()
    assert end.wait_status is not None
    assert (os.waitstatus_to_exitcode(end.wait_status), end.is_output_cut) == (3, False)
    assert end.swept >= 1
    assert b"ready" in end.tail


async def test_the_last_words_before_the_end_are_never_lost(workshop: Workshop) -> None:
    for number in range(60):
        process = await workshop.run("echo", f"tail-{number}", tty=True)
        assert await whole_output(process) == b"tail-%d\r\n" % number
        assert (await process.wait()).is_output_cut is False


async def test_writing_to_a_terminal_that_dies_meanwhile_hurts_nobody(workshop: Workshop) -> None:
    process = await workshop.run("sleep", "600", tty=True)
    await process.write(b"line\n" * 100_000, is_eof=False)
    await process.end(signal=signal.SIGKILL, grace_ms=0)
    await process.wait()
    assert (await workshop.ended("echo", "fine", tty=True)).tail == b"fine\r\n"


async def test_terminals_are_given_back(workshop: Workshop) -> None:
    def count() -> int:
        return int(Path("/proc/sys/kernel/pty/nr").read_text())

    await workshop.ended("true", tty=True)
    before = count()
    for _ in range(40):
        await workshop.ended("true", tty=True)
    assert count() <= before + 5, "others may use terminals too"


async def test_endless_output_on_a_terminal_is_bounded_and_can_be_ended(workshop: Workshop) -> None:
    process = await workshop.run("yes", tty=True)
    while process.peek().total < 10 << 20:
        await anyio.sleep(0.01)
    chunk = process.peek()
    assert chunk.total - chunk.retained_from == 256 * 1024
    await process.write(b"\x03", is_eof=False)
    assert await exit_code(process) == -signal.SIGINT
