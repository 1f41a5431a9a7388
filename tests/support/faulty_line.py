"""A line to a server that loses things on cue: a proxy in front of it, in this process."""

import contextlib
import socket
import threading
from typing import Literal

Fault = Literal["request lost", "answer lost", "silence"]
"""What happens to the next exchange: cut before it, cut once the server has answered, or nothing arrives any more."""


class FaultyLine:
    """A listener that passes everything on to a port of this machine, until a fault is set."""

    def __init__(self, port: int) -> None:
        self._target = port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._fault: Fault | None = None
        self.is_down = False
        """New connections are closed at once."""
        self.struck = threading.Event()
        self._open: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def fail_next(self, fault: Fault) -> None:
        """Have the next exchange of any connection fail."""
        self.struck.clear()
        self._fault = fault

    def close(self) -> None:
        """End the line."""
        self._listener.close()
        for each in self._open:
            each.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                if self.is_down:
                    client.close()
                    continue
                server = socket.create_connection(("127.0.0.1", self._target))
                self._open += [client, server]
                threading.Thread(target=self._pass_on, args=(client, server), daemon=True).start()
                threading.Thread(target=self._pass_back, args=(client, server), daemon=True).start()

    def _pass_on(self, client: socket.socket, server: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while content := client.recv(65536):
                if self._fault in ("request lost", "silence"):
                    is_silent = self._fault == "silence"
                    self._strike()
                    if is_silent:
                        while client.recv(65536):
                            pass
                    break
                server.sendall(content)
        _cut(client, server)

    def _pass_back(self, client: socket.socket, server: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while content := server.recv(65536):
                if self._fault == "answer lost":
                    self._strike()
                    break
                client.sendall(content)
        _cut(client, server)

    def _strike(self) -> None:
        self._fault = None
        self.struck.set()


def _cut(*ends: socket.socket) -> None:
    for end in ends:
        with contextlib.suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)
