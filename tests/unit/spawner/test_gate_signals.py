"""A child that is signalled while it settles in says nothing of that on what is its program's output."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

SOURCES = Path(__file__).parents[3] / "src"
SCRIPT = """
import os, sys
from adapters.spawner import gated_child, inheritance
from adapters.spawner.gate import fork_at_gate
from adapters.spawner.waking import Waiter

inheritance.prepare_process(None)
Waiter(os.getppid())
close = inheritance.close_all_except

def close_and_be_signalled(kept):
    close(kept)
    os.kill(os.getpid(), int(sys.argv[1]))

inheritance.close_all_except = close_and_be_signalled
program = gated_child.Program(
    path="/bin/echo", argv=["echo", "hi"], environment={}, root="/", entering=None, descriptors=())
gate = fork_at_gate(program, has_terminal=False, has_input=False, rows=24, columns=80)
report, go, output = gate.ends()
os.write(go, b"g")
sys.stdout.buffer.write(os.read(report, 100) + b" " + os.read(output, 1000))
"""


@pytest.mark.parametrize("number", [signal.SIGCONT, signal.SIGCHLD, signal.SIGPIPE, signal.SIGWINCH])
def test_a_signal_in_the_middle_of_settling_in_is_no_output(number: signal.Signals) -> None:
    ran = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(number.value)], capture_output=True, check=True,
        env={**os.environ, "PYTHONPATH": str(SOURCES)})
    assert ran.stderr == b""
    assert ran.stdout == (b" " if number == signal.SIGPIPE else b"ready hi\n")
