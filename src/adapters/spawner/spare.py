"""A child forked ahead: it has settled in on pipes of its own and waits to be told what it is to become.

Forking takes longer than all else on the way to a command's start, so it is done while the reaper has nothing to do.
A spare has no lease and belongs to no command until it is taken. It ends with its reaper, since what it waits at is
closed then. It costs nothing to lose one: a command can always be forked anew.
"""

from __future__ import annotations

import os
import select
import signal
import socket

from adapters.spawner.gate import fork_on_pipes
from adapters.spawner.gated_child import ORDERS, Program, become
from adapters.spawner.inheritance import FIRST_DESCRIPTOR, put_in_place
from adapters.wire import Link, LinkClosedError, WireError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from adapters.spawner.gate import Gate
    from adapters.wire import Message


class Spare:
    """The reaper's side of a child without a program."""

    def __init__(self, gate: Gate, orders: Link) -> None:
        self.pid = gate.pid
        self._gate = gate
        self._orders = orders

    def take(self, program: Program, *, has_input: bool) -> Gate | None:
        """Make it the child of a command, which goes to its gate; None if it can't be, and then it is gone."""
        os.kill(self.pid, signal.SIGCONT)  # one that was stopped while it waited would wait for ever, and who asks too
        if self._is_fit() and self._is_told(program, has_input=has_input):
            self._orders.close()
            if not has_input:
                self._gate.close_input()
            return self._gate
        self.dismiss()
        return None

    def _is_fit(self) -> bool:
        """Return whether it lives: one that says something before it is asked couldn't settle in, or has ended."""
        poll = select.poll()
        poll.register(self._gate.report, select.POLLIN)
        return not poll.poll(0)

    def _is_told(self, program: Program, *, has_input: bool) -> bool:
        try:
            self._orders.send(_order(program, has_input=has_input), program.descriptors)
        except (LinkClosedError, WireError, OSError):  # the last: there is no room for another descriptor
            return False
        return not self._orders.has_unsent  # more than a socket holds isn't waited for

    def dismiss(self) -> None:
        """End it. It may have ended already, but not have been reaped."""
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        self.forget()

    def forget(self) -> None:
        """Close what leads to one that has ended."""
        self._orders.close()
        self._gate.close()


def fork_spare() -> Spare | None:
    """Return a child that waits for a program; None where the system has no room for one."""
    try:
        own, childs = socket.socketpair()
    except OSError:
        return None
    with childs:
        try:
            gate = fork_on_pipes(_wait_for_orders, has_input=True, others={ORDERS: childs.fileno()})
        except OSError:
            own.close()
            return None
    return Spare(gate, Link(own))


def _order(program: Program, *, has_input: bool) -> Message:
    return {
        "kind": "become", "path": program.path, "argv": program.argv, "environment": program.environment,
        "root": program.root, "entering": program.entering, "has_input": has_input,
    }


def _wait_for_orders() -> None:
    """Become what is ordered; return when nobody will order anything any more."""
    orders = Link(socket.socket(fileno=ORDERS))
    messages: list[tuple[Message, list[int]]] = []
    poll = select.poll()
    poll.register(ORDERS, select.POLLIN)
    while not messages:
        poll.poll()
        try:
            messages = orders.receive()
        except (LinkClosedError, WireError):
            return
    order, descriptors = messages[0]
    if not order["has_input"]:
        null = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
        put_in_place({0: null})
        os.close(null)
    own = dict(enumerate(descriptors, FIRST_DESCRIPTOR))
    put_in_place(own)
    for descriptor in set(descriptors) - own.keys():
        os.close(descriptor)
    orders.close()
    become(Program(
        path=order["path"], argv=order["argv"], environment=order["environment"], root=order["root"],
        entering=order["entering"], descriptors=(),
    ))
