"""The gate: a forked child that has everything set up and waits for one byte before it becomes the program.

1. The parent makes the pipes (or a terminal) and forks.
2. The child leads its own session, keeps descriptors 0 to 2 alone, restores signals and limits, enters the working
   directory and its sandbox, says `ready` and waits.
3. `go` is written: it executes the program. The pipe ends instead (abandoned, or whoever held it is dead): it exits,
   and nothing ran.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import resource
import signal

from adapters.spawner.terminal import Terminal, fork_on_terminal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import NoReturn

NOT_FOUND_CODE = 127
NOT_RUN_CODE = 126
_DESCRIPTORS_MAX = 1 << 20
"""No descriptor is higher on a system without a limit of its own."""
_REPORT_BYTES_MAX = 4096
_READY = b"ready"
_OWN_SIGNALS = (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
"""Ignored by Python, or with a handler of `waking`: the others are at their default (`prepare_process`)."""
_open_files_limits: tuple[int, int] | None = None
_set_disposition = getattr(signal.signal, "__wrapped__", signal.signal)
"""Without the wrapper that makes enumerations of numbers: it touches three times the pages."""


class Program:
    """What a child is to become."""

    __slots__ = ("argv", "enter", "environment", "inherited", "path", "root")

    def __init__(
        self,
        *,
        path: str,
        argv: list[str],
        environment: dict[str, str],
        root: str,
        enter: Callable[[], None] | None,
        inherited: tuple[int, ...],
    ) -> None:
        self.path = path
        self.argv = argv
        self.environment = environment
        self.root = root
        self.enter = enter
        self.inherited = inherited


class GateError(Exception):
    """The child couldn't be set up, so nothing will run. Carries the system's errno."""

    def __init__(self, message: str, errno: int | None) -> None:
        super().__init__(message)
        self.errno = errno


class Gate:
    """The parent's side of a gated child."""

    def __init__(
        self, pid: int, *, report: int, go: int, output: int, own_input: int | None = None,
        terminal: Terminal | None = None,
    ) -> None:
        self.pid = pid
        self.report: int | None = report
        """Readable once the child is ready, or couldn't be set up."""
        self._go: int | None = go
        self._streams = [output] if own_input is None else [output, own_input]
        self._terminal = terminal

    def take_report(self) -> None:
        """Return when the child is at the gate. Raises GateError."""
        assert self.report is not None, "a child reports once"
        content = os.read(self.report, _REPORT_BYTES_MAX)
        os.close(self.report)
        self.report = None
        if content == _READY:
            return
        if not content:
            raise GateError("The child ended before it was set up.", None)
        problem = json.loads(content)
        raise GateError(problem["message"], problem["errno"])

    def go(self) -> None:
        """Let it run. Does nothing if it has ended already or was let go."""
        if self._go is not None:
            with contextlib.suppress(BrokenPipeError):  # it was killed at the gate, which is an end like any other
                os.write(self._go, b"g")
            self.shut()

    def shut(self) -> None:
        """Never let it run, unless it does already."""
        if self._go is not None:
            os.close(self._go)
            self._go = None

    def streams(self) -> list[int]:
        """Return where its output can be read, and, unless that is the terminal or null, where input can be written."""
        return self._streams

    def resize(self, rows: int, columns: int) -> None:
        """Give its terminal that size, if it has one."""
        if self._terminal is not None:
            with contextlib.suppress(OSError):  # hung up: it has no size any more
                self._terminal.resize(rows, columns)

    def close_streams(self) -> None:
        """Close this process' copies of input and output, when another process has them. A terminal stays."""
        if self._terminal is None:
            _close(*self._streams)
            self._streams = []

    def close(self) -> None:
        """Close all that is open here."""
        self.shut()
        self.close_streams()
        if self._terminal is not None:
            self._terminal.close()
        if self.report is not None:
            os.close(self.report)
            self.report = None


def fork_at_gate(program: Program, *, has_terminal: bool, has_input: bool, rows: int, columns: int) -> Gate:
    """Fork a child that waits at its gate. Raises OSError when the system has no room for it; nothing is left then."""
    if not has_terminal:
        return _fork_on_pipes(program, has_input=has_input)
    report, report_child, go_child, go = _pipes()
    closed = _all_but((0, 1, 2, report_child, go_child, *program.inherited))
    try:
        pid, descriptor = fork_on_terminal()
    except OSError:
        _close(report, report_child, go_child, go)
        raise
    if pid == 0:
        _be_child(program, report_child, go_child, closed)
    _close(report_child, go_child)
    os.set_inheritable(descriptor, False)
    terminal = Terminal(pid, descriptor)
    terminal.resize(rows, columns)
    return Gate(pid, report=report, go=go, output=descriptor, terminal=terminal)


def _fork_on_pipes(program: Program, *, has_input: bool) -> Gate:
    opened: list[int] = []
    try:
        report, report_child, go_child, go = _pipes()
        opened += (report, report_child, go_child, go)
        output, output_child = os.pipe()
        opened += (output, output_child)
        input_child, own_input = os.pipe() if has_input else (os.open("/dev/null", os.O_RDONLY | os.O_CLOEXEC), None)
        opened += (input_child,) if own_input is None else (input_child, own_input)
        closed = _all_but((0, 1, 2, report_child, go_child, *program.inherited))
        pid = os.fork()
    except OSError:
        _close(*opened)
        raise
    if pid == 0:
        _be_child(program, report_child, go_child, closed, streams=(input_child, output_child, output_child))
    _close(report_child, go_child, input_child, output_child)
    return Gate(pid, report=report, go=go, output=output, own_input=own_input)


def _pipes() -> tuple[int, int, int, int]:
    report, report_child = os.pipe()
    try:
        go_child, go = os.pipe()
    except OSError:
        _close(report, report_child)
        raise
    return report, report_child, go_child, go


def _close(*descriptors: int) -> None:
    for descriptor in descriptors:
        os.close(descriptor)


def _be_child(
    program: Program,
    report: int,
    go: int,
    closed: list[tuple[int, int]],
    streams: tuple[int, int, int] | None = None,
) -> NoReturn:
    """Set up, wait at the gate, become the program. Never returns, and never raises into the parent's code.

    Every page that it touches first is copied, so what can be worked out before the fork is.
    """
    try:
        step = "A session of its own can't be had"
        if streams is not None:
            os.setsid()
            for number, descriptor in enumerate(streams):
                os.dup2(descriptor, number)
        for begin, end in closed:
            os.closerange(begin, end)
        step = "Signals can't be restored"
        for number in _OWN_SIGNALS:
            _set_disposition(number, signal.SIG_DFL)
        step = "The limit of open files can't be restored"
        if _open_files_limits is not None:
            resource.setrlimit(resource.RLIMIT_NOFILE, _open_files_limits)
        step = f"The working directory {program.root} can't be entered"
        os.chdir(program.root)
        step = "The sandbox can't be entered"
        if program.enter is not None:
            program.enter()
        for descriptor in program.inherited:
            os.set_inheritable(descriptor, True)
        os.write(report, _READY)
        os.close(report)
    except BaseException as error:
        code = error.errno if isinstance(error, OSError) else None
        reason = os.strerror(code) if code is not None else f"{type(error).__name__}: {error}"
        problem = {"errno": code, "message": f"{step}: {reason}."[:1024]}
        with contextlib.suppress(OSError):  # whoever would read it is gone, and so is the reason to tell
            os.write(report, json.dumps(problem).encode("ascii")[:_REPORT_BYTES_MAX])
        os._exit(NOT_RUN_CODE)
    try:
        if os.read(go, 1) == b"g":
            os.execve(program.path, program.argv, program.environment)  # noqa: S606 - that is what it is for
    except BaseException as error:
        _tell_on_own_output(program, error)
        is_missing = isinstance(error, OSError) and error.errno == errno.ENOENT
        os._exit(NOT_FOUND_CODE if is_missing else NOT_RUN_CODE)
    os._exit(NOT_RUN_CODE)


def _tell_on_own_output(program: Program, error: BaseException) -> None:
    reason = error.strerror if isinstance(error, OSError) else str(error)
    with contextlib.suppress(OSError):  # nobody reads its output any more
        os.write(2, os.fsencode(f"codespace-es: {program.path} couldn't be executed: {reason}\n"))


def prepare_process(open_files_max: int | None) -> None:
    """Give this process what every command of its inherits: default signals, none blocked.

    Once for all: after a fork each page that is touched costs, so a child does as little as it can. The limit of open
    files is for the commands; this process takes all it may have.
    """
    global _open_files_limits  # noqa: PLW0603 - the same for every command of this process and its forks
    for number in signal.valid_signals() - set(_OWN_SIGNALS):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if open_files_max is not None:
        soft = open_files_max if hard == resource.RLIM_INFINITY else min(open_files_max, hard)
    _open_files_limits = (soft, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def close_all_except(kept: Sequence[int]) -> None:
    """Close every descriptor of this process but `kept`."""
    for begin, end in _all_but(kept):
        os.closerange(begin, end)


def _all_but(kept: Sequence[int]) -> list[tuple[int, int]]:
    """Return the ranges of descriptors between `kept`."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    end = _DESCRIPTORS_MAX if hard == resource.RLIM_INFINITY else max(hard, *kept)
    ranges: list[tuple[int, int]] = []
    below = 0
    for descriptor in sorted({*kept, end}):
        if descriptor > below:  # an empty range would wrap round and be all of them
            ranges.append((below, descriptor))
        below = descriptor + 1
    return ranges
