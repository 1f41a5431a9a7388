"""One worker process as the server sees it: executed, fed and read without blocking, killed when of no more use."""

import contextlib
import importlib.util
import signal
import socket
import subprocess
import sys
from collections import deque
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import adapters.structural
from adapters.wire import Link, LinkClosedError, Message, WireError

_ENVIRONMENT: Final = {"LC_ALL": "C.UTF-8", "PATH": "/usr/bin:/bin"}
_ENDING_SECONDS_MAX: Final = 5.0


class WorkerUnavailableError(Exception):
    """No worker can be started here, or none gets as far as its first word."""


class WorkerGoneError(Exception):
    """The worker has ended; `is_over_time` says whether for taking too long."""

    def __init__(self, *, is_over_time: bool = False) -> None:
        super().__init__("The worker has ended.")
        self.is_over_time = is_over_time


@dataclass(slots=True)
class Question:
    """Something that is answered by exactly one message."""

    number: int
    """Place in the order of its job."""
    message: Message
    size_bytes: int
    attempts: int = 0


class WorkerLink:
    """A living worker, and what it has been asked. Not for two threads at once, but for `kill`."""

    def __init__(self, *, file_seconds_max: float) -> None:
        """Execute a worker. Raises WorkerUnavailableError."""
        connection, other = socket.socketpair()
        with other:
            try:
                self._process = subprocess.Popen(  # noqa: S603 - our own program
                    worker_command(other.fileno(), file_seconds_max),
                    pass_fds=[other.fileno()],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,  # the engine writes there what its exceptions say better
                    start_new_session=True,
                    env=_ENVIRONMENT,
                    cwd="/",
                )
            except OSError as error:
                connection.close()
                raise WorkerUnavailableError(f"A worker can't be started: {error}.") from error
        self._link = Link(connection)
        self._has_said_hello = False
        self.asked: deque[Question | None] = deque()
        """In order; None for what nobody waits for any more."""
        self.asked_bytes = 0
        self.is_proven = False
        """It has said something since this was last set to False, so what it dies of is what it was asked."""

    @property
    def pid(self) -> int:
        """The process."""
        return self._process.pid

    @property
    def is_alive(self) -> bool:
        """The process hasn't ended."""
        return self._process.poll() is None

    @property
    def has_unsent(self) -> bool:
        """Something waits until the socket takes more."""
        return self._link.has_unsent

    def fileno(self) -> int:
        """Return the socket's descriptor, to wait for it."""
        return self._link.fileno()

    def tell(self, message: Message) -> None:
        """Send what isn't answered. Raises WorkerGoneError, WorkerUnavailableError."""
        try:
            self._link.send(message)
        except LinkClosedError:
            raise self._gone() from None

    def ask(self, question: Question) -> None:
        """Send what is answered, behind what has been asked before. Raises as `tell`."""
        self.asked.append(question)
        self.asked_bytes += question.size_bytes
        self.tell(question.message)

    def disown(self) -> None:
        """Forget who asked what is still to be answered."""
        self.asked = deque(None for _ in self.asked)
        self.asked_bytes = 0

    def flush(self) -> None:
        """Send as much as the socket takes now. Raises as `tell`."""
        try:
            self._link.flush()
        except LinkClosedError:
            raise self._gone() from None

    def receive(self) -> list[tuple[Question, Message]]:
        """Return the answers that have come to what somebody still waits for. Raises as `tell`."""
        try:
            messages = [message for message, _ in self._link.receive()]
        except (LinkClosedError, WireError):
            raise self._gone() from None
        answers = []
        self.is_proven = self.is_proven or bool(messages)
        for message in messages:
            if message["kind"] == "hello":
                self._has_said_hello = True
                continue
            question = self.asked.popleft()
            if question is not None:
                self.asked_bytes -= question.size_bytes
                answers.append((question, message))
        return answers

    def _gone(self) -> WorkerGoneError | WorkerUnavailableError:
        self.kill()
        if not self._has_said_hello:
            return WorkerUnavailableError("A worker ended before it was ready.")
        return WorkerGoneError(is_over_time=self._process.returncode == -signal.SIGPROF)

    def kill(self) -> None:
        """End the process, whatever it does. A second call does nothing."""
        self._process.kill()
        with contextlib.suppress(subprocess.TimeoutExpired):  # the kernel will get to it
            self._process.wait(_ENDING_SECONDS_MAX)

    def close(self) -> None:
        """End the process and close the socket."""
        self.kill()
        self._link.close()


def worker_command(descriptor: int, file_seconds_max: float) -> list[str]:
    """Return the command line of a worker, isolated from everything that may lie around here."""
    package = Path(adapters.structural.__file__).parent
    found = importlib.util.find_spec("ast_grep_py")
    assert found is not None, "the engine is a dependency"
    assert found.origin is not None, "the engine is a package in a directory"
    directories = dict.fromkeys([str(package.parents[1]), str(Path(found.origin).parents[1])])
    program = str(package / "worker.py")
    return [sys.executable, "-I", "-S", program, str(descriptor), str(file_seconds_max), *directories]
