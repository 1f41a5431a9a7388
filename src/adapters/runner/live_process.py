"""A command that was let go, and the one that still waits at its gate: the port's two faces of a conversation."""

import contextlib
import os

import anyio
from anyio.abc import TaskGroup

from adapters.runner.conversation import AtGate, Conversation
from adapters.runner.input_pump import InputPump
from adapters.runner.output_pump import OutputPump
from adapters.runner.output_window import OutputWindow
from adapters.runner.spawner_link import SpawnerLink
from codespace_es.ports.runner import (
    InputClosedError,
    NotTerminalError,
    OutputChunk,
    ProcessEnd,
    RunnerCommand,
    RunnerLostError,
)

_LAST_WORD_SECONDS_MAX = 15.0


class GatedProcess:
    """A child at its gate. Implements `GatedChild`."""

    def __init__(
        self, command: RunnerCommand, conversation: Conversation, window: OutputWindow, *, link: SpawnerLink,
        tasks: TaskGroup,
    ) -> None:
        at_gate = conversation.at_gate
        assert at_gate is not None, "the child has reported"
        self._command = command
        self._window = window
        self._conversation = conversation
        self._at_gate: AtGate | None = at_gate
        self._link = link
        self._tasks = tasks
        self.pid = at_gate.pid
        self.started_ticks = at_gate.started_ticks
        self.boot_id = link.boot_id
        self.pid_namespace = link.pid_namespace
        self.sandbox = at_gate.sandbox

    async def go(self) -> "SpawnedProcess":
        """Let it run. Raises RunnerLostError: its gate is shut, so it didn't."""
        at_gate, self._at_gate = self._at_gate, None
        assert at_gate is not None, "a child is let go or abandoned, once"
        conversation = self._conversation
        process = SpawnedProcess(
            conversation, at_gate, self._window, has_terminal=self._command.tty, link=self._link, tasks=self._tasks
        )
        self._tasks.start_soon(process.follow)
        conversation.begin()
        try:
            if not self._link.is_there():
                raise RunnerLostError("The runner was lost before the command was let go.", is_dispatched=False)
            os.write(at_gate.go, b"g")
        except BrokenPipeError:  # it was killed at the gate: an end like any other, unless the runner is killed too
            await self._link.patiently(conversation, conversation.until_gone)
        finally:
            os.close(at_gate.go)
        return process

    async def abandon(self) -> None:
        """Make sure that it never runs, and is gone."""
        at_gate, self._at_gate = self._at_gate, None
        if at_gate is None:
            return
        at_gate.close()
        self._window.close()
        self._tasks.start_soon(self._link.dismiss, self._conversation)
        with anyio.CancelScope(shield=True), anyio.move_on_after(_LAST_WORD_SECONDS_MAX):
            try:
                await self._conversation.until_over()
            except RunnerLostError:
                return  # its gate is shut for good, which is what was asked for


class SpawnedProcess:
    """A child that was let go. Implements `LiveProcess`."""

    def __init__(
        self, conversation: Conversation, at_gate: AtGate, window: OutputWindow, *, has_terminal: bool,
        link: SpawnerLink, tasks: TaskGroup,
    ) -> None:
        self._link = link
        self._tasks = tasks
        self._has_terminal = has_terminal
        self._conversation = conversation
        self._window = window
        self._output = OutputPump(at_gate.output, window)
        own_input = at_gate.input
        self._input = None if own_input is None else InputPump(own_input, tasks, is_terminal=has_terminal)

    async def follow(self) -> None:
        """Take its output until that ends, then see that the end is told. The runner's task."""
        self._conversation.when_over(self._expect_end)
        try:
            await self._output.run()
        finally:
            if self._input is not None:
                self._input.close()
        with contextlib.suppress(RunnerLostError):  # that is told too
            await self._link.patiently(self._conversation, self._conversation.until_gone)

    def _expect_end(self) -> None:
        self._output.expect_end()
        if self._input is not None:
            self._input.close()  # who writes now shall hear of it

    @property
    def leader_status(self) -> int | None:
        """The leader's wait status once it has exited; None while it runs, and if it was lost."""
        return self._conversation.leader_status

    async def read(self, cursor: int, *, wait_ms: int, bytes_max: int) -> OutputChunk:
        """Return retained output from max(cursor, retained_from) on; wait up to `wait_ms` for the first new byte."""
        if wait_ms and self._is_silent(cursor):
            with anyio.move_on_after(wait_ms / 1000):
                while self._is_silent(cursor):
                    await self._output.changes.wait()
        return self._chunk(*self._window.read(cursor, bytes_max))

    def _is_silent(self, cursor: int) -> bool:
        return cursor >= self._window.total and not self._output.is_finished

    def peek(self) -> OutputChunk:
        """Return an empty chunk that tells where the output stands."""
        return self._chunk(self._window.total, b"")

    def _chunk(self, start: int, content: bytes) -> OutputChunk:
        is_end = self._output.is_finished and start + len(content) >= self._window.total
        return OutputChunk(start, content, is_end, self._window.retained_from, self._window.total)

    async def write(self, content: bytes, *, is_eof: bool) -> None:
        """Queue input, in order of the calls. Raises InputClosedError, LimitReachedError, RunnerLostError."""
        self._require_input().write(content, is_eof=is_eof)

    def require_room(self, size_bytes: int) -> None:
        """Pass if a `write` of so many bytes would be taken now. Raises as it does."""
        self._require_input().require_room(size_bytes)

    def _require_input(self) -> InputPump:
        self._require_link()
        if self._input is None:
            raise InputClosedError("The command was started without an input.")
        return self._input

    async def resize(self, rows: int, columns: int) -> None:
        """Give the terminal another size. Nothing happens once it is gone."""
        if not self._has_terminal:
            raise NotTerminalError("The command has no terminal.")
        self._require_link()
        self._output.resize_terminal(rows, columns)

    async def end(self, *, signal: int, grace_ms: int) -> None:
        """Signal the tree, continue what is stopped, and kill what is left of it after `grace_ms`."""
        self._require_link()
        if self._conversation.gone is None:
            self._conversation.tell("end", signal=signal, grace_ms=grace_ms)
            self._tasks.start_soon(self._see_to_end, grace_ms)

    async def _see_to_end(self, grace_ms: int) -> None:
        """See that its reaper ends it: the command may have stopped that, and do so again and again."""
        conversation = self._conversation
        self._link.wake(conversation)
        with contextlib.suppress(RunnerLostError):  # then it has ended with the spawner
            with anyio.move_on_after(grace_ms / 1000):
                await conversation.until_gone()
            if not await self._link.patiently(conversation, conversation.until_gone):
                self._link.sweep(conversation)

    async def wait(self) -> ProcessEnd:
        """Return how it ended, when the whole tree is gone and all it printed was taken."""
        await self._conversation.until_gone()
        while not self._output.is_finished:
            await self._output.changes.wait()
        gone = self._conversation.gone
        assert gone is not None, "that was waited for"
        window = self._window
        return ProcessEnd(
            wait_status=gone.wait_status,
            duration_ms=gone.duration_ms,
            swept=gone.swept,
            is_output_cut=self._output.is_cut,
            output_bytes=window.total,
            retained_from=window.retained_from,
            tail=window.read(window.retained_from, window.total - window.retained_from)[1],
            head=window.head if window.retained_from > 0 else b"",
        )

    def _require_link(self) -> None:
        if self._conversation.is_lost:
            raise RunnerLostError("The runner was lost; what it ran is ended.", is_dispatched=False)
