"""What a child that can't be set up reports is told whole, however long the names in it are."""

import errno
import os

import pytest

from adapters.spawner.gate import fork_at_gate
from adapters.spawner.gated_child import Program
from adapters.spawner.report import REPORT_BYTES_MAX, NotReadyError, require_ready


@pytest.mark.parametrize("sign", ["x", "ö", "\N{GRINNING FACE}", "\udcff"])
def test_a_directory_with_a_long_name_that_cant_be_entered(sign: str) -> None:
    root = "/missing" + f"/{sign * 60}" * 12
    program = Program(path="/bin/true", argv=["true"], environment={}, root=root, entering=None, descriptors=())
    gate = fork_at_gate(program, has_terminal=False, has_input=False, rows=24, columns=80)
    try:
        with pytest.raises(NotReadyError, match=r"^The working directory /missing/.*: No such file .*\.$") as told:
            require_ready(os.read(gate.report, REPORT_BYTES_MAX))
    finally:
        gate.close()
        os.waitpid(gate.pid, 0)
    assert told.value.errno == errno.ENOENT
