"""The spawner itself: gives each command a reaper, and passes messages between reapers and the server.

A reaper that has nothing left beneath it is kept for the next command: forking one costs more than all the rest.
The spawner keeps a duplicate of the instance's lock for its life, and one of a workspace's lease until every process
that was started under it is gone. When the server is gone, every tree ends, then the spawner.
Source: decisions 1, 17, 18.
"""

from __future__ import annotations

import contextlib
import gc
import os
import signal
import socket
import sys
import time

from adapters.spawner import PROTOCOL, sandbox
from adapters.spawner.inheritance import close_all_except, prepare_process
from adapters.spawner.reaper import reap_commands
from adapters.spawner.tree import become_subreaper, boot_id, end_with_parent, kill_beneath, pid_namespace
from adapters.spawner.waking import Waiter, reap_ended_children
from adapters.wire import Link, LinkClosedError, WireError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

    from adapters.wire import Message

_BROKEN_CODE = 70
_SWEEP_SECONDS_MAX = 2.0
_SHUTDOWN_SECONDS_MAX = 5.0
_IDLE_MAX = 1
"""So many reapers are kept without a command. Commands mostly come one after another."""


class _Command:
    """A command that a reaper has."""

    __slots__ = ("is_gated", "lease", "process_id")

    def __init__(self, process_id: str, lease: int) -> None:
        self.process_id = process_id
        self.lease = lease
        self.is_gated = False


class _Reaper:
    """A reaper's process."""

    __slots__ = ("command", "control", "pid")

    def __init__(self, pid: int, control: Link) -> None:
        self.pid = pid
        self.control = control
        self.command: _Command | None = None


class Spawner:
    """The one object of the spawner's process."""

    def __init__(self, server: Link) -> None:
        self._server = server
        self._reapers: dict[int, _Reaper] = {}
        self._by_command: dict[str, _Reaper] = {}
        self._held: list[int] = []
        self._waiter = Waiter()

    def run(self) -> None:
        """Serve until the server is gone and every tree with it."""
        end_with_parent()
        become_subreaper()
        sandbox.probe({})  # what it finds out is known to every reaper, which is a fork of this process
        gc.collect()
        gc.freeze()  # what is here now isn't looked at again, so a reaper shares its pages
        try:
            self._server.send({
                "kind": "hello", "protocol": PROTOCOL, "boot_id": boot_id(), "pid_namespace": pid_namespace(),
            })
            while not self._waiter.is_end_requested:
                self._step()
        except LinkClosedError:
            pass  # the server has ended, which is how every spawner ends
        finally:
            self._end_everything()

    def _step(self) -> None:
        controls = {reaper.control.fileno(): reaper for reaper in self._reapers.values()}
        controls.pop(-1, None)
        server = self._server.fileno()
        writable = [server] if self._server.has_unsent else []
        writable += [descriptor for descriptor, reaper in controls.items() if reaper.control.has_unsent]
        ready = self._waiter.wait((server, *controls), writable, None)
        for descriptor in ready & controls.keys():
            self._listen(controls[descriptor])
        self._reap()
        if server in ready:
            self._server.flush()
            for message, descriptors in self._server.receive():
                self._obey(message, descriptors)

    # From the server

    def _obey(self, message: Message, descriptors: list[int]) -> None:
        match message["kind"]:
            case "hold":
                self._held += descriptors
            case "probe":
                self._server.send({"kind": "sandbox", "sandbox": sandbox.probe(message)})
            case "start":
                self._start(message, descriptors[0])
            case _:
                reaper = self._by_command.get(message["process_id"])
                if reaper is not None:
                    with contextlib.suppress(LinkClosedError):  # it is ending: its last word answers this
                        reaper.control.send(message)

    def _start(self, request: Message, lease: int) -> None:
        process_id: str = request["process_id"]
        try:
            reaper = self._free_reaper()
        except OSError as error:
            os.close(lease)
            self._say_not_started(process_id, f"No process could be made: {error.strerror}.", error.errno)
            return
        reaper.command = _Command(process_id, lease)
        self._by_command[process_id] = reaper
        os.kill(reaper.pid, signal.SIGCONT)  # whoever has stopped it while it was idle didn't mean this command
        with contextlib.suppress(LinkClosedError):  # it was killed while it was idle: its end is noticed next
            reaper.control.send(request, [lease])

    def _free_reaper(self) -> _Reaper:
        for reaper in self._reapers.values():
            if reaper.command is None and reaper.control.fileno() >= 0:
                return reaper
        own, reapers = socket.socketpair()
        try:
            pid = os.fork()
        except OSError:
            own.close()
            reapers.close()
            raise
        if pid == 0:
            self._be_reaper(reapers)
        reapers.close()
        reaper = self._reapers[pid] = _Reaper(pid, Link(own))
        return reaper

    def _be_reaper(self, control: socket.socket) -> NoReturn:
        """Become a reaper. It may not return, nor let go of objects whose descriptors it closes here."""
        try:
            close_all_except((0, 1, 2, control.fileno(), *self._held))
            reap_commands(Link(control))
        except BaseException:
            import traceback  # it is half a megabyte, and never needed

            traceback.print_exc()
        finally:
            sys.stderr.flush()
            os._exit(_BROKEN_CODE)

    # From the reapers

    def _listen(self, reaper: _Reaper) -> bool:
        """Pass on what a reaper says; return whether that was anything."""
        try:
            reaper.control.flush()
            messages = reaper.control.receive()
        except (LinkClosedError, WireError):
            reaper.control.close()
            return False
        for message, descriptors in messages:
            command = reaper.command
            assert command is not None, "a reaper speaks of its command"
            if message["kind"] in ("ended", "not_started"):
                self._finish(reaper, command)
            elif message["kind"] == "gated":
                command.is_gated = True
            self._server.send(message, descriptors)
            for descriptor in descriptors:
                os.close(descriptor)
        return bool(messages)

    def _finish(self, reaper: _Reaper, command: _Command) -> None:
        """Let go of a command whose tree is empty."""
        reaper.command = None
        del self._by_command[command.process_id]
        os.close(command.lease)
        idle = sum(other.command is None and other.control.fileno() >= 0 for other in self._reapers.values())
        if idle > _IDLE_MAX:
            reaper.control.close()

    def _reap(self) -> None:
        for pid, _ in reap_ended_children()[0]:
            reaper = self._reapers.pop(pid, None)
            if reaper is None:
                continue  # an orphan of a reaper that was killed
            while self._listen(reaper):
                pass
            reaper.control.close()
            if reaper.command is not None:
                self._finish_killed(reaper, reaper.command)

    def _finish_killed(self, reaper: _Reaper, command: _Command) -> None:
        """End what a reaper left that was killed: it is ours now."""
        swept = self._sweep(_SWEEP_SECONDS_MAX)
        self._finish(reaper, command)
        if command.is_gated:
            self._server.send({
                "kind": "ended", "process_id": command.process_id, "wait_status": None, "swept": swept,
            })
        else:
            self._say_not_started(command.process_id, "The process that should have watched it was killed.", None)

    def _say_not_started(self, process_id: str, reason: str, number: int | None) -> None:
        self._server.send({"kind": "not_started", "process_id": process_id, "message": reason, "errno": number})

    def _sweep(self, seconds_max: float) -> int:
        """Kill all that is beneath this process but no reaper's; return how many that were."""
        swept: set[tuple[int, int]] = set()
        until = time.monotonic() + seconds_max
        passes = 0
        while time.monotonic() < until:
            killed = kill_beneath(os.getpid(), is_racing=passes > 1, except_beneath=frozenset(self._reapers))
            if not killed:
                break
            swept.update((member.pid, member.started_ticks) for member in killed)
            self._waiter.wait((), (), 0.005)
            passes += 1
        return len(swept)

    # The end

    def _end_everything(self) -> None:
        self._server.close()
        for reaper in self._reapers.values():
            reaper.control.close()
        until = time.monotonic() + _SHUTDOWN_SECONDS_MAX
        has_children = True
        while has_children and time.monotonic() < until:
            ended, has_children = reap_ended_children()
            for pid, _ in ended:
                self._reapers.pop(pid, None)
            if not self._reapers:
                break
            self._waiter.wait((), (), 0.05)
        self._reapers.clear()
        self._sweep(_SHUTDOWN_SECONDS_MAX)


def serve(connection: socket.socket, *, open_files_max: int | None) -> None:
    """Be the spawner of the server at the other end of `connection`, until that is gone."""
    prepare_process(open_files_max)
    server = Link(connection)
    try:
        Spawner(server).run()
    except WireError as error:
        sys.stderr.write(f"codespace-es spawner: {error}\n")
