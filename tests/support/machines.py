"""How a state machine over real servers ends: they stop in order, and the log that they leave is whole."""

import shutil
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol

from anyio.from_thread import BlockingPortal

from adapters.log.reader import LogReader
from codespace_es.event_catalogue import CATALOGUE
from replay.verify import verify
from support.server import Server


class Machine(Protocol):
    """Servers on one data directory, on an event loop in a thread."""

    servers: dict[str, Server]
    portal: BlockingPortal
    portal_context: AbstractContextManager[BlockingPortal]
    scratch: Path


def end_whole(machine: Machine) -> None:
    """Stop the servers; every law has to hold of their log, folds included."""
    for server in machine.servers.values():
        machine.portal.call(server.stop)
    machine.portal_context.__exit__(None, None, None)
    with LogReader(machine.scratch / "data" / "codespace.db", catalogue=CATALOGUE) as reader:
        report = verify(reader)
    shutil.rmtree(machine.scratch)
    assert report.is_ok, report
