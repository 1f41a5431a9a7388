"""What a child that can't be set up reports is told whole, however long the names in it are."""

import errno
import os

import pytest

from adapters.spawner.gate import GateError, fork_at_gate
from adapters.spawner.gated_child import Program


@pytest.mark.parametrize("sign", ["x", "ö", "\N{GRINNING FACE}", "\udcff"])
def test_a_directory_with_a_long_name_that_cant_be_entered(sign: str) -> None:
    root = "/missing" + f"/{sign * 60}" * 12
    program = Program(path="/bin/true", argv=["true"], environment={}, root=root, entering=None, descriptors=())
    gate = fork_at_gate(program, has_terminal=False, has_input=False, rows=24, columns=80)
    try:
        with pytest.raises(GateError, match=r"^The working directory /missing/.*: No such file or dir.*\.$") as told:
            gate.take_report()
    finally:
        gate.close()
        os.waitpid(gate.pid, 0)
    assert told.value.errno == errno.ENOENT
