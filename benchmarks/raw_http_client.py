"""The same raw client over HTTP: requests on connections that are kept, several at once from threads of their own."""

import json
import re
import subprocess
import time
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from http.client import HTTPConnection
from pathlib import Path
from threading import local
from typing import Any

from raw_client import ANSWER_SECONDS_MAX, FailedError, Measured, variables_of

_HEADERS = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
_LISTENING = re.compile(rb"listening on http://[^:]+:(\d+)/mcp")
_AT_ONCE = 8


class HttpClient(Measured):
    """Speaks to one server over HTTP, without a handshake: the server keeps nothing of a client."""

    def __init__(self, command: list[str], root: Path, environment: dict[str, str] | None = None) -> None:
        """Start `command` in the directory `root`, whose parent is its home, and wait until it listens."""
        log = root.parent / "server.log"
        with log.open("wb") as stderr:
            self.process = subprocess.Popen(
                [*command, "--http", "127.0.0.1:0"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=stderr,
                env=variables_of(root, environment), cwd=root,
            )
        while (found := _LISTENING.search(log.read_bytes())) is None:
            if self.process.poll() is not None:
                raise FailedError(log.read_text())
            time.sleep(0.01)
        self._port = int(found[1])
        self._own = local()
        self._threads = ThreadPoolExecutor(_AT_ONCE)
        self._sent: set[Future[dict[str, Any]]] = set()

    def ask(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        connection = getattr(self._own, "connection", None)
        if connection is None:
            connection = self._own.connection = HTTPConnection("127.0.0.1", self._port, timeout=ANSWER_SECONDS_MAX)
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
        connection.request("POST", "/mcp", body, _HEADERS)
        response = connection.getresponse()
        content = response.read()
        if response.status != 200:
            raise FailedError(content.decode(errors="replace"))
        lines = [line.removeprefix(b"data: ") for line in content.splitlines() if line.startswith(b"data: {")]
        message: dict[str, Any] = json.loads(lines[-1] if lines else content)
        return message

    def send(self, method: str, params: dict[str, Any]) -> None:
        self._sent.add(self._threads.submit(self.ask, method, params))

    def receive(self) -> dict[str, Any]:
        """Return the next answer to what was sent."""
        done = next(iter(wait(self._sent, return_when=FIRST_COMPLETED)[0]))
        self._sent.remove(done)
        return done.result()

    def end(self) -> None:
        self._threads.shutdown()
        self.process.terminate()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
