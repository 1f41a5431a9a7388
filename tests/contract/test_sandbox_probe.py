"""What is said to be enforced was found out by trying, whatever the program that promised it."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import adapters
from adapters.spawner import bubblewrap
from adapters.spawner.landlock import all_but
from adapters.spawner.sandbox_confinement import Confinement, SandboxError
from adapters.spawner.tree import Member

SOURCES = str(Path(adapters.__file__).parents[1])
SCRIPT = """
import json, os, sys
sys.path.append(sys.argv[1])
from adapters.spawner import bubblewrap, probe, sandbox
if sys.argv[2]:
    bubblewrap.find_program = lambda: sys.argv[2]
probe.SECONDS_MAX = float(sys.argv[3])
report = sandbox.probe({})
found = sandbox._find_out_once()
off = sandbox.probe({"sandbox": "off"})
try:
    os.waitpid(-1, os.WNOHANG)
    has_children = True
except ChildProcessError:
    has_children = False
print(json.dumps({"report": report, "options": found.bubblewrap, "abi": found.landlock_abi, "off": off,
                  "has_children": has_children, "pid": os.getpid()}))
"""


def find_out(program: str = "", *, seconds_max: float = 5.0) -> dict[str, Any]:
    """Return what a fresh process finds, with `program` in place of bubblewrap."""
    ended = subprocess.run(
        [sys.executable, "-I", "-S", "-c", SCRIPT, SOURCES, program, str(seconds_max)],
        capture_output=True, check=True, timeout=60, env={"PATH": "/usr/bin:/bin"},
    )
    found: dict[str, Any] = json.loads(ended.stdout)
    return found


def pretender(tmp_path: Path, what_it_does: str) -> str:
    path = tmp_path / "bwrap"
    path.write_text(f"#!/bin/sh\n{what_it_does}\n")
    path.chmod(0o755)
    return str(path)


def left_in_temporary_directories(pid: int) -> set[str]:
    """Return what that process has left: others look at this machine at the same time."""
    names = {name for place in ("/tmp", "/var/tmp") for name in os.listdir(place)}
    return {name for name in names if name.startswith(f"codespace-es-probe-{pid}-")}


def test_the_report_says_what_was_found_and_nothing_is_left() -> None:
    found = find_out()
    level = 3 if found["options"] else 2 if found["abi"] else 1
    assert found["report"]["level"] == level
    assert found["report"]["is_network_enforced"] == (level > 1)
    assert found["report"]["gaps"], "no level is without gaps, and it says so"
    assert found["off"]["level"] == 1
    assert left_in_temporary_directories(found["pid"]) == set()


@pytest.mark.parametrize(
    "what_it_does",
    [
        'while [ "$1" != -- ]; do shift; done; shift; exec "$@"',
        "exit 0",
        "exit 1",
        "kill -9 $$",
    ],
    ids=["confines nothing", "runs nothing", "fails", "dies"],
)
def test_a_program_that_doesnt_confine_isnt_believed(tmp_path: Path, what_it_does: str) -> None:
    found = find_out(pretender(tmp_path, what_it_does))
    assert found["options"] is None
    assert found["report"]["kind"] == ("landlock" if found["abi"] else "none")


def test_a_sandbox_with_the_hosts_network_isnt_believed(tmp_path: Path) -> None:
    program = bubblewrap.find_program()
    if program is None or len(Path("/proc/net/route").read_text().splitlines()) < 2:
        pytest.skip("no bubblewrap here, or no network")
    what_it_does = f'options="$1 $2"; shift 2; exec {program} $options --share-net "$@"'
    assert find_out(pretender(tmp_path, what_it_does))["options"] is None


def test_a_program_that_hangs_is_given_up_and_killed(tmp_path: Path) -> None:
    found = find_out(pretender(tmp_path, "exec sleep 600"), seconds_max=0.5)
    assert (found["options"], found["has_children"]) == (None, False)


def test_a_program_that_others_can_write_isnt_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = Path(pretender(tmp_path, "exit 0"))
    monkeypatch.setenv("PATH", str(tmp_path))
    assert bubblewrap.find_program() == str(path)
    path.chmod(0o777)
    assert bubblewrap.find_program() != str(path)


def request(root: Path, **fields: Any) -> dict[str, Any]:
    return {
        "root": str(root), "network": False, "sandbox": "auto", "hidden_paths": (), "read_only_paths": (), "tty": False,
        "argv": ("true",), "program": "/bin/true", "environment": {}, **fields,
    }


@pytest.mark.parametrize("root", ["/", "/usr"])
def test_a_workspace_that_holds_what_confines_it_is_refused(root: str) -> None:
    with pytest.raises(SandboxError, match="workspace"):
        bubblewrap.confine(request(Path(root)), "/usr/bin/bwrap", ())


def test_a_workspace_that_is_hidden_itself_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SandboxError, match="hidden"):
        bubblewrap.confine(request(tmp_path, hidden_paths=(str(tmp_path),)), "/usr/bin/bwrap", ())


# What bubblewrap's end says of the command's


def exited(code: int) -> int:
    return code << 8


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGKILL, signal.SIGTERM, signal.SIGSEGV, signal.SIGRTMAX])
def test_128_and_a_fatal_signal_is_an_end_by_that_signal(number: int) -> None:
    assert bubblewrap.true_wait_status(exited(128 + number)) == number


@pytest.mark.parametrize("code", [0, 1, 127, 128, 128 + signal.SIGCHLD, 128 + signal.SIGSTOP, 200, 255])
def test_every_other_code_is_the_commands_own(code: int) -> None:
    assert bubblewrap.true_wait_status(exited(code)) == exited(code)


def test_an_end_of_bubblewrap_by_a_signal_is_told() -> None:
    assert bubblewrap.true_wait_status(signal.SIGKILL) == signal.SIGKILL


def test_wrappers_are_told_from_the_command() -> None:
    leader, first, own = Member(10, 1), Member(11, 1), Member(12, 1)
    wrapped = Confinement({}, {}, wrappers=2)
    tree = [leader, first, own]
    assert [wrapped.wrappers_among(tree[:count], 10) for count in range(4)] == [0, 1, 2, 2]
    assert wrapped.wrappers_among([first, own], 10) == 1, "the outermost has ended"
    assert Confinement({}, {}).wrappers_among([leader, first], 10) == 0


# What level 2 lets be read


def test_all_but_the_hidden_is_covered(tmp_path: Path) -> None:
    for name in ("a/one", "a/hidden/secret", "b/two"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("x")
    (tmp_path / "a" / "link").symlink_to(tmp_path / "a" / "hidden")
    covered = set(all_but([str(tmp_path / "a" / "hidden")], str(tmp_path)))
    assert covered == {str(tmp_path / "a" / "one"), str(tmp_path / "b")}
