"""Hosts of one network on this machine: network namespaces with machine ids and directories of locks of their own.

They reach each other, and this machine, over a bridge; a host's line can be cut and mended.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path


class HostsMissingError(Exception):
    """No hosts can be played here; the text says why."""


@dataclass(frozen=True)
class Host:
    """One of them."""

    name: str
    directory: Path
    """What it has of its own."""
    machine_id: str

    def command(self, *command: str) -> list[str]:
        """Return the command line that runs a Python program on this host."""
        return [sys.executable, "-m", "support.on_host", self.name, str(self.directory / "machine-id"),
                str(self.directory / "state"), str(_state_directory()), *command]

    def cut(self) -> None:
        """Cut its line: packets are lost, nothing is refused."""
        _ip("link", "set", f"{self.name}h", "down")

    def mend(self) -> None:
        """Mend its line."""
        _ip("link", "set", f"{self.name}h", "up")


@contextmanager
def network(scratch: Path, count: int = 2) -> Iterator[tuple[str, list[Host]]]:
    """Yield this machine's address on a new network, and hosts on it.

    Raises:
        HostsMissingError: it takes root and the kernel's namespaces.
    """
    if os.geteuid() != 0 or shutil.which("ip") is None:
        raise HostsMissingError("hosts are network namespaces: that takes root and iproute2")
    _state_directory().mkdir(parents=True, exist_ok=True)
    mark = os.getpid() % 10_000
    net = f"10.{50 + mark % 100}.{mark // 100}"
    bridge = f"cs{mark}"
    try:
        _ip("link", "add", bridge, "type", "bridge")
        _ip("addr", "add", f"{net}.1/24", "dev", bridge)
        _ip("link", "set", bridge, "up")
        yield f"{net}.1", [
            _host(scratch, bridge, f"cs{mark}n{number}", f"{net}.{number + 2}/24", number) for number in range(count)
        ]
    finally:
        for number in range(count):
            _ip("netns", "del", f"cs{mark}n{number}", is_needed=False)
        _ip("link", "del", bridge, is_needed=False)


def _host(scratch: Path, bridge: str, name: str, address: str, number: int) -> Host:
    directory = scratch / name
    (directory / "state").mkdir(parents=True)
    machine_id = f"{number + 1:032x}"
    (directory / "machine-id").write_text(machine_id + "\n", encoding="ascii")
    _ip("netns", "add", name)
    _ip("link", "add", f"{name}h", "type", "veth", "peer", "name", "eth0", "netns", name)
    _ip("link", "set", f"{name}h", "master", bridge, "up")
    _ip("-n", name, "addr", "add", address, "dev", "eth0")
    _ip("-n", name, "link", "set", "eth0", "up")
    _ip("-n", name, "link", "set", "lo", "up")
    return Host(name, directory, machine_id)


def _state_directory() -> Path:
    """Return where this user's locks are, on every host."""
    return Path("~/.local/state/codespace-es").expanduser()


def _ip(*arguments: str, is_needed: bool = True) -> None:
    ran = subprocess.run(["ip", *arguments], capture_output=True, text=True, check=False)
    if ran.returncode and is_needed:
        raise HostsMissingError(f"ip {' '.join(arguments)}: {ran.stderr.strip()}")
