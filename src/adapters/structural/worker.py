"""The program of a worker: `python -I -S worker.py SOCKET FILE_SECONDS DIRECTORY…`.

SOCKET is the number of an inherited descriptor; FILE_SECONDS how much processor time one file may take: after that the
kernel ends the process, whatever it is doing. The directories are all that is added to the module path: where this
package lies, and where the engine does. It ends when nobody is at the other end any more.
"""

from __future__ import annotations

import resource
import select
import signal
import socket
import sys

_MEMORY_BYTES_MAX = 2 * 1024 * 1024 * 1024


def main(arguments: list[str]) -> None:
    """Serve the socket that `arguments` name."""
    sys.path += [directory for directory in arguments[2:] if directory not in sys.path]
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY_BYTES_MAX, _MEMORY_BYTES_MAX))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    serve(socket.socket(fileno=int(arguments[0])), file_seconds_max=float(arguments[1]))


def serve(connection: socket.socket, *, file_seconds_max: float) -> None:
    """Answer messages until the other end is closed."""
    from adapters.structural.examining import Examiner
    from adapters.wire import Link, LinkClosedError, WireError

    link = Link(connection)
    examiner = Examiner()
    try:
        link.send({"kind": "hello"})
        while True:
            select.select([link], [], [])
            for message, _ in link.receive():
                # The signal isn't handled: its default ends the process, also in the middle of the engine's work.
                signal.setitimer(signal.ITIMER_PROF, file_seconds_max)
                answer = examiner.answer(message)
                signal.setitimer(signal.ITIMER_PROF, 0)
                if answer is not None:
                    link.send(answer)
                while link.has_unsent:
                    select.select([], [link], [])
                    link.flush()
    except (LinkClosedError, WireError):
        return  # nobody waits


if __name__ == "__main__":
    main(sys.argv[1:])
