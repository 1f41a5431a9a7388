"""Programs of Python's that a test listens to while they run, forked from a warm parent."""

import os
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TextIO

from support.warm_servers import Forked, own_environment, start_on


@dataclass(frozen=True, slots=True)
class Program:
    """One that runs, and what it says."""

    process: Forked | subprocess.Popen[bytes]
    stdout: TextIO
    stderr: TextIO


@contextmanager
def running(command: list[str], environment: Mapping[str, str] | None = None) -> Iterator[Program]:
    """Yield a program that has begun, with nothing on its stdin; it is killed if it still runs at the end."""
    pipes = [os.pipe(), os.pipe()]
    with open(os.devnull, "rb") as nothing:
        streams = nothing.fileno(), pipes[0][1], pipes[1][1]
        process = start_on(streams, command, env=environment or own_environment())
    for _, theirs in pipes:
        os.close(theirs)
    with open(pipes[0][0], encoding="utf-8") as stdout, open(pipes[1][0], encoding="utf-8") as stderr:
        try:
            yield Program(process, stdout, stderr)
        finally:
            process.kill()
            process.wait()
