"""The spawner itself: forks reapers, and sweeps up after those that are killed.

A reaper speaks to the server itself, over a socket that the server has made, and serves one command after another
there: forking one costs more than all the rest. The spawner keeps a duplicate of the instance's lock for its life. When
the server is gone, every tree ends, then the spawner.
Source: decisions 1, 17, 18.
"""

from __future__ import annotations

import gc
import os
import signal
import socket
import sys
import time

from adapters.spawner import PROTOCOL, sandbox
from adapters.spawner.inheritance import close_all_except, prepare_process
from adapters.spawner.reaper import reap_commands
from adapters.spawner.tree import become_subreaper, boot_id, kill_beneath, pid_namespace
from adapters.spawner.waking import Waiter, holding_requests_to_end, reap_ended_children
from adapters.wire import Link, LinkClosedError, WireError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

    from adapters.wire import Message

_BROKEN_CODE = 70
_SWEEP_SECONDS_MAX = 2.0
_SHUTDOWN_SECONDS_MAX = 5.0


class Spawner:
    """The one object of the spawner's process."""

    def __init__(self, server: Link) -> None:
        self._server = server
        self._reapers: set[int] = set()
        self._held: list[int] = []
        self._waiter = Waiter(os.getppid())

    def run(self) -> None:
        """Serve until the server is gone and every tree with it."""
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
        server = self._server.fileno()
        ready = self._waiter.wait((server,), (server,) if self._server.has_unsent else (), None)
        self._reap()
        self._continue_stopped_reapers()
        if server in ready:
            self._server.flush()
            for message, descriptors in self._server.receive():
                self._obey(message, descriptors)

    def _obey(self, message: Message, descriptors: list[int]) -> None:
        match message["kind"]:
            case "hold":
                self._held += descriptors
            case "probe":
                self._server.send({"kind": "sandbox", "sandbox": sandbox.probe(message)})
            case "start":
                self._start(message, descriptors[0], socket.socket(fileno=descriptors[1]))
            case "continue" if message["reaper"] in self._reapers:
                os.kill(message["reaper"], signal.SIGCONT)
            case "sweep" if message["reaper"] in self._reapers:
                kill_beneath(message["reaper"], is_racing=True)
                os.kill(message["reaper"], signal.SIGCONT)
            case "kill" if message["reaper"] in self._reapers:
                os.kill(message["reaper"], signal.SIGKILL)

    def _start(self, request: Message, lease: int, control: socket.socket) -> None:
        """Fork a reaper that begins with this command, and is spoken to at `control`."""
        process_id: str = request["process_id"]
        own = os.getpid()
        try:
            with control, holding_requests_to_end():
                pid = os.fork()
                if pid == 0:
                    self._be_reaper(own, control, request, lease)
                self._reapers.add(pid)
            self._server.send({"kind": "reaper", "process_id": process_id, "reaper": pid})
        except OSError as error:
            self._server.send({
                "kind": "not_started", "process_id": process_id, "errno": error.errno,
                "message": f"No process could be made: {error.strerror}.",
            })
        finally:
            os.close(lease)

    def _be_reaper(self, spawner: int, control: socket.socket, request: Message, lease: int) -> NoReturn:
        """Become a reaper. It may not return, nor let go of objects whose descriptors it closes here."""
        try:
            close_all_except((0, 1, 2, control.fileno(), lease, *self._held))
            reap_commands(Link(control), request, lease, spawner=spawner)
        except BaseException:
            import traceback  # it is half a megabyte, and never needed

            traceback.print_exc()
        finally:
            sys.stderr.flush()
            os._exit(_BROKEN_CODE)

    def _continue_stopped_reapers(self) -> None:
        """A command may stop its reaper, which then never hears of its end."""
        for _ in range(len(self._reapers)):  # not for ever, if they are stopped as fast as they are continued
            try:
                stopped = os.waitid(os.P_ALL, 0, os.WSTOPPED | os.WNOHANG)
            except ChildProcessError:  # they have all ended meanwhile
                break
            if stopped is None:
                break
            if stopped.si_pid in self._reapers:
                os.kill(stopped.si_pid, signal.SIGCONT)

    def _reap(self) -> None:
        ended = self._reapers.intersection(pid for pid, _ in reap_ended_children()[0])  # the rest are orphans of theirs
        self._reapers -= ended  # at once: their numbers may be others' from now on
        for pid in ended:
            swept = self._sweep(_SWEEP_SECONDS_MAX)  # what it left is ours now
            self._server.send({"kind": "reaper_ended", "reaper": pid, "swept": swept})

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
        for pid in self._reapers:
            os.kill(pid, signal.SIGTERM)
            os.kill(pid, signal.SIGCONT)  # one that is stopped would leave its tree to the sweep, seconds later
        until = time.monotonic() + _SHUTDOWN_SECONDS_MAX
        has_children = True
        while has_children and time.monotonic() < until:
            ended, has_children = reap_ended_children()
            self._reapers.difference_update(pid for pid, _ in ended)
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
