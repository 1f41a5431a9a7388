"""The gate: a forked child that has everything set up and waits for one byte before it becomes the program.

1. The parent makes the pipes (or a terminal) and forks.
2. The child sets itself up, reports that it is ready and waits (`gated_child`).
3. `go` is written: it executes the program. The pipe ends instead (abandoned, or whoever held it is dead): it exits,
   and nothing ran.
"""

from __future__ import annotations

import os
from functools import partial

from adapters.spawner.gated_child import be_child, become
from adapters.spawner.inheritance import FIRST_DESCRIPTOR
from adapters.spawner.terminal import Terminal, fork_on_terminal
from adapters.spawner.tree import started_ticks

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from adapters.spawner.gated_child import Program


class Gate:
    """The parent's side of a gated child."""

    def __init__(
        self, pid: int, *, report: int, go: int, output: int, own_input: int | None = None,
        terminal: Terminal | None = None,
    ) -> None:
        self.pid = pid
        self.started_ticks = started_ticks(pid)
        self.report = report
        """Readable once the child is ready, or couldn't be set up."""
        self._go = go
        self._output = output
        self._input = own_input
        self._terminal = terminal
        self._is_held = True

    def ends(self) -> list[int]:
        """Return what the report is read from, `go` written to, output read from; and input written to, if it has any.

        They are for another process; `hand_over` closes those of this one.
        """
        inputs = [each for each in (self._input, None if self._terminal is None else self._output) if each is not None]
        return [self.report, self._go, self._output, *inputs]

    def hand_over(self) -> None:
        """Close what another process has now: from here on that one alone can let the child go. A terminal stays."""
        if self._is_held:
            self._is_held = False
            os.close(self.report)
            os.close(self._go)
            self.close_input()
            if self._terminal is None:
                os.close(self._output)

    def close_input(self) -> None:
        """Let there be no input."""
        if self._input is not None:
            os.close(self._input)
            self._input = None

    def close(self) -> None:
        """Close all that is open here. A child that is still at the gate ends."""
        self.hand_over()
        if self._terminal is not None:
            self._terminal.close()


def fork_at_gate(program: Program, *, has_terminal: bool, has_input: bool, rows: int, columns: int) -> Gate:
    """Fork a child that waits at its gate. Raises OSError when the system has no room for it; nothing is left then."""
    own = dict(enumerate(program.descriptors, FIRST_DESCRIPTOR))
    live = partial(become, program)
    if not has_terminal:
        return fork_on_pipes(live, has_input=has_input, others=own)
    opened: list[int] = []
    try:
        report, report_child, go_child, go = _gate_pipes(opened)
        pid, descriptor = fork_on_terminal()
    except OSError:
        _close(*opened)
        raise
    if pid == 0:
        be_child(report_child, go_child, live, streams=None, others=own)
    _close(report_child, go_child)
    os.set_inheritable(descriptor, False)
    terminal = Terminal(pid, descriptor)
    terminal.resize(rows, columns)
    return Gate(pid, report=report, go=go, output=descriptor, terminal=terminal)


def fork_on_pipes(live: Callable[[], None], *, has_input: bool, others: Mapping[int, int]) -> Gate:
    """Fork a child that settles in and then does what `live` says. Raises OSError; nothing is left then."""
    opened: list[int] = []
    try:
        report, report_child, go_child, go = _gate_pipes(opened)
        output, output_child = _pipe(opened)
        input_child, own_input = _pipe(opened) if has_input else (_nothing(opened), None)
        pid = os.fork()
    except OSError:
        _close(*opened)
        raise
    if pid == 0:
        be_child(report_child, go_child, live, streams=(input_child, output_child, output_child), others=others)
    _close(report_child, go_child, input_child, output_child)
    return Gate(pid, report=report, go=go, output=output, own_input=own_input)


def _gate_pipes(opened: list[int]) -> tuple[int, int, int, int]:
    return *_pipe(opened), *_pipe(opened)


def _pipe(opened: list[int]) -> tuple[int, int]:
    ends = os.pipe()
    opened += ends
    return ends


def _nothing(opened: list[int]) -> int:
    opened.append(os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC))
    return opened[-1]


def _close(*descriptors: int) -> None:
    for descriptor in descriptors:
        os.close(descriptor)
