"""The socket that clients connect to: bound before the server comes to life, so that a port in use is said at once."""

import ipaddress
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from adapters.settings.http import HttpSettings
from adapters.settings.problem import StartupError


@dataclass(frozen=True, slots=True)
class Listener:
    """A bound socket, and the address that it is bound to."""

    socket: socket.socket
    host: str
    port: int

    @property
    def url(self) -> str:
        """Where clients reach it, as far as the address tells."""
        return f"http://{f'[{self.host}]' if ':' in self.host else self.host}:{self.port}"


@contextmanager
def listen(settings: HttpSettings) -> Iterator[Listener]:
    """Yield a socket bound to one address: the first that the host's name stands for, IPv4 before IPv6.

    Raises:
        StartupError: without a token the address is reachable from elsewhere, or it can't be had.
    """
    family, address = _resolve(settings.host, settings.port)
    if settings.token is None and not ipaddress.ip_address(address[0].partition("%")[0]).is_loopback:
        raise StartupError(
            f"Listening on {settings.host} lets other machines in, and no token is set: set CODESPACE_HTTP_TOKEN or "
            "http.token, or listen on 127.0.0.1."
        )
    # The protocol is named, since the event loop sends answers without delay only on sockets that name it.
    with socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP) as bound:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            bound.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        try:
            bound.bind(address)
            bound.listen(512)
        except OSError as error:
            raise StartupError(
                f"The server can't listen on {settings.host}:{settings.port}: {error.strerror or error}."
            ) from error
        host, port = bound.getsockname()[:2]
        yield Listener(bound, host, port)


def _resolve(host: str, port: int) -> tuple[socket.AddressFamily, tuple[str, int]]:
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (OSError, UnicodeError) as error:
        raise StartupError(f"The server can't listen on {host!r}: there is no such address.") from error
    family, _kind, _protocol, _name, address = min(found, key=lambda entry: entry[0] != socket.AF_INET)
    return family, address  # type: ignore[return-value]  # IPv6 addresses have two parts more, which bind takes
