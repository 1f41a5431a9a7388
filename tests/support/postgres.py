"""A real PostgreSQL for tests: made in a scratch directory, run by an unprivileged user, killed and started again."""

import contextlib
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path
from uuid import uuid4

import psutil
import pytest

from adapters.log.postgres.making import make_log
from adapters.settings.postgres_address import PostgresAddress
from support.memory import room_in_memory

_START_SECONDS = 60.0
_ROOM_BYTES = 2 * 1024**3
"""Less than this may be too little for all servers of a run; each needs 60 MB at first, and some more later."""
_SCHEMAS_AT_ONCE = 16

STORES = ("file", pytest.param("postgres", marks=pytest.mark.soak))
"""Parameters of a fixture that opens a log: what runs on a file always runs on PostgreSQL too when there is time."""


def place_of(request: pytest.FixtureRequest) -> PostgresAddress | None:
    """Return a new log for such a parameter; None: the file that is used without one."""
    return request.getfixturevalue("postgres").new_log() if request.param == "postgres" else None


class PostgresMissingError(Exception):
    """No server can be had here; the text says why."""


class PostgresServer:
    """One server on a port of its own. Every log gets a schema of its own."""

    def __init__(self, *, listen: str = "127.0.0.1", is_large: bool = False) -> None:
        """Make it and start it. Its files are in memory if there is room and it isn't to become large."""
        self._listen = listen
        self.programs = _programs()
        self._user = _unprivileged_user()
        memory = None if is_large else room_in_memory(_ROOM_BYTES)
        self.directory = Path(tempfile.mkdtemp(prefix="codespace-postgres-", dir=memory))
        os.chmod(self.directory, 0o755)
        self._cluster = self.directory / "cluster"
        self._cluster.mkdir(mode=0o700)
        if self._user is not None:
            for path in (self.directory, self._cluster):
                shutil.chown(path, self._user)
        self.port = _free_port()
        self._server: subprocess.Popen[bytes] | None = None
        self._schemas: list[str] = []
        self._run("initdb", "--auth=trust", "--username=codespace", "--encoding=UTF8", "--no-sync", "--locale=C")
        with (self._cluster / "pg_hba.conf").open("a", encoding="utf-8") as rules:
            rules.write("host all all samenet trust\n")
        self.start()

    def _run(self, program: str, *arguments: str) -> None:
        ran = subprocess.run(
            [self.programs / program, "-D", self._cluster, *arguments], user=self._user, cwd=self.directory,
            capture_output=True, text=True, check=False, extra_groups=[] if self._user else None,
        )
        if ran.returncode:
            raise PostgresMissingError(f"{program} failed: {ran.stderr.strip()[-500:]}")

    def start(self) -> None:
        """Start it, and wait until it answers."""
        with (self.directory / "server.log").open("ab") as log:
            self._server = subprocess.Popen(
                [self.programs / "postgres", "-D", self._cluster, "-p", str(self.port), "-k", self.directory,
                 "-c", f"listen_addresses={self._listen}", "-c", "max_connections=200"],
                user=self._user, cwd=self.directory, stdout=log, stderr=log, extra_groups=[] if self._user else None,
            )
        deadline = time.monotonic() + _START_SECONDS
        while time.monotonic() < deadline:
            ready = subprocess.run(
                [self.programs / "pg_isready", "-q", "-h", self.directory, "-p", str(self.port)], check=False)
            if ready.returncode == 0:
                return
            if self._server.poll() is not None:
                break
            time.sleep(0.05)
        raise PostgresMissingError((self.directory / "server.log").read_text(encoding="utf-8")[-1000:])

    @property
    def pid(self) -> int:
        """Of the process whose children all others are."""
        assert self._server is not None
        return self._server.pid

    def kill(self) -> None:
        """Kill every process of it at one blow, as a power cut would."""
        assert self._server is not None
        parent = psutil.Process(self._server.pid)
        family = [parent, *parent.children(recursive=True)]
        for process in family:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.send_signal(signal.SIGKILL)
        psutil.wait_procs(family[1:])
        self._server.wait()
        self._server = None

    def stop(self) -> None:
        """End it, whatever is connected, and remove what it wrote."""
        if self._server is not None:
            self._server.send_signal(signal.SIGQUIT)
            self._server.wait()
            self._server = None
        shutil.rmtree(self.directory, ignore_errors=True)

    def query(self, statement: str) -> list[str]:
        """Return the lines that psql prints for a statement of an operator's."""
        ran = subprocess.run(
            [self.programs / "psql", "-h", self.directory, "-p", str(self.port), "-U", "codespace", "-d", "postgres",
             "-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-c", statement],
            capture_output=True, text=True, check=False,
        )
        assert ran.returncode == 0, ran.stderr
        return ran.stdout.splitlines()

    def wait_until_unused(self) -> None:
        """Wait until no server of ours has a session: what the killed had sent last is done or refused then."""
        deadline = time.monotonic() + _START_SECONDS
        while (count := self.query("SELECT count(*) FROM pg_stat_activity WHERE application_name = 'codespace-es'")
               ) != ["0"]:
            assert time.monotonic() < deadline, f"{count} sessions are left"
            time.sleep(0.05)

    def configure(self, name: str, value: str | None) -> None:
        """Give a setting of the whole server another value, or its own again (None), and wait until it holds."""
        before = self.query(f"SHOW {name}")
        self.query(f"ALTER SYSTEM SET {name} = {value}" if value is not None else f"ALTER SYSTEM RESET {name}")
        self.query("SELECT pg_reload_conf()")
        deadline = time.monotonic() + _START_SECONDS
        while self.query(f"SHOW {name}") == before and time.monotonic() < deadline:
            time.sleep(0.05)

    def new_schema(self) -> PostgresAddress:
        """Return an address at which there is room for a log, and none yet."""
        if not self._schemas:
            self._schemas = [f"log_{uuid4().hex}" for _ in range(_SCHEMAS_AT_ONCE)]
            self.query("; ".join(f"CREATE SCHEMA {name}" for name in self._schemas))
        return self.address(self._schemas.pop())

    def address(self, schema: str, *, host: str = "127.0.0.1", port: int | None = None) -> PostgresAddress:
        """Return the address of a schema."""
        return PostgresAddress(
            f"postgresql://codespace@{host}:{port or self.port}/postgres?search_path={schema}")

    def new_log(self, *, host: str = "127.0.0.1", port: int | None = None) -> PostgresAddress:
        """Return the address of a new, empty log; by another way to this server, if need be."""
        address = self.new_schema()
        make_log(address)
        return self.address(schema_of(address), host=host, port=port)


def schema_of(address: PostgresAddress) -> str:
    """Return the schema that an address of ours names."""
    return address.url.rpartition("search_path=")[2]


def _programs() -> Path:
    found = [Path(path) for path in map(shutil.which, ["postgres"]) if path]
    candidates = [*(path.parent for path in found), *sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)]
    for directory in candidates:
        if (directory / "initdb").exists() and (directory / "psql").exists():
            return directory
    raise PostgresMissingError("no PostgreSQL server is installed (Debian: apt-get install postgresql)")


def _unprivileged_user() -> str | None:
    """Return whom to run it as: it refuses root."""
    if os.geteuid() != 0:
        return None
    for name in ("postgres", "nobody"):
        with contextlib.suppress(KeyError):
            return pwd.getpwnam(name).pw_name
    raise PostgresMissingError("PostgreSQL refuses root, and there is no user `postgres` or `nobody`")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
