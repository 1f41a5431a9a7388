"""Patch writers that really die: children of a small process, since forking one that is full of tests costs much more.

`dies_at` asks that process, which runs this module, to fork; the child writes or settles a patch and ends without any
clean-up at its k-th fault point.
"""

import atexit
import json
import os
import subprocess
import sys
import traceback
from functools import cache
from pathlib import Path
from typing import Literal

from adapters.patch_writer.writer import ExchangePatchWriter
from codespace_es.ports.fault_points import FaultPoint
from support.crash_orders import SCENARIOS, UNDO, Scenario

DIED = 77
FINISHED = 0
FAILED = 3

_BY_NAME = {scenario.name: scenario for scenario in (*SCENARIOS, UNDO)}
_ROOT = Path(__file__).parents[2]


def dies_at(
    k: int, job: Literal["write", "settle"], scenario: Scenario, root: Path, *, has_exchange: bool = True
) -> bool:
    """Have a child do the job on the tree at `root` and die at its k-th fault point; return whether it got there."""
    parent = _parent()
    assert parent.stdin is not None
    assert parent.stdout is not None
    print(json.dumps([k, job, scenario.name, str(root), has_exchange]), file=parent.stdin, flush=True)
    code = int(parent.stdout.readline())
    assert code in {DIED, FINISHED}, code
    return code == DIED


@cache
def _parent() -> subprocess.Popen[str]:
    path = os.pathsep.join([str(_ROOT / "src"), str(_ROOT / "tests")])
    parent = subprocess.Popen([sys.executable, "-m", "support.dying_writer"], env={**os.environ, "PYTHONPATH": path},
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    atexit.register(parent.communicate)
    return parent


def _run(k: int, job: str, scenario: Scenario, root: Path, *, has_exchange: bool) -> None:
    hits = 0

    def die(_point: FaultPoint) -> None:
        nonlocal hits
        hits += 1
        if hits == k:
            os._exit(DIED)

    writer = ExchangePatchWriter(die, has_exchange=has_exchange)
    (writer.write if job == "write" else writer.settle)(scenario.order(root))


def main() -> None:
    """Fork for each line on stdin, and say on stdout how the child ended."""
    for line in sys.stdin:
        k, job, name, root, has_exchange = json.loads(line)
        child = os.fork()
        if child == 0:
            try:
                _run(k, job, _BY_NAME[name], Path(root), has_exchange=has_exchange)
            except BaseException:
                traceback.print_exc()
                os._exit(FAILED)
            os._exit(FINISHED)
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)


if __name__ == "__main__":
    main()
