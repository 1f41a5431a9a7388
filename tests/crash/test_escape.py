"""Real attempts to get out of the sandbox, at each level, as root and as an ordinary user, on pipes and on a terminal.

What a level's report names as a gap has to be one, and everything else has to be refused: the report is exact.
"""

import os
from pathlib import Path

import pytest

from support.escape import SYSTEM_PYTHON, Outcome, Setting, needs_another_user, outcome, users
from support.escape_attempts import ATTEMPTS

NAMES = tuple(ATTEMPTS)
SETTINGS = [
    *(Setting(level, is_root) for level in (3, 2) for is_root in users()),
    *(Setting(level, users()[0], tty=True) for level in (3, 2)),
    *(Setting(2, users()[0], abi=abi) for abi in (2, 3, 5)),  # as older kernels have it
]
GAPS = {
    "change_the_mode_outside": ("mode, owner and times",),
    "change_the_times_outside": ("mode, owner and times",),
    "write_shared_memory_of_others": ("shared memory",),
    "write_protected": ("protected paths",),
    "replace_protected": ("protected paths",),
    "list_hidden": ("names in the hidden directories",),
    "see_a_stranger": ("sight of other processes",),
    "connect_to_a_socket_in_tmp": ("Unix sockets of other programs, by path",),
    "connect_to_a_socket_elsewhere": ("Unix sockets of other programs, by path", "Unix sockets outside /run and /tmp"),
    "connect_to_an_abstract_socket": ("abstract Unix sockets (",),
    "signal_a_stranger": ("signals to other processes",),
    "truncate_outside": ("truncating files outside",),
}
"""By which words a report owns up to an attempt."""
AT_LEVEL_1 = (
    "write_outside", "create_outside", "delete_outside", "rename_out", "rename_in", "link_in_and_write", "link_out",
    "write_through_a_symbolic_link", "write_through_the_root_of_a_stranger", "change_the_mode_outside",
    "change_the_times_outside", "write_shared_memory_of_others", "write_protected", "replace_protected", "read_hidden",
    "write_hidden", "open_the_memory_of_a_stranger", "signal_a_stranger", "see_a_stranger", "connect_by_tcp",
    "connect_to_an_abstract_socket", "connect_to_a_socket_in_tmp", "connect_to_a_socket_elsewhere",
    "write_through_a_descriptor_opened_for_reading",
)
"""Attempts that harm nobody but their victims, and that nothing but a sandbox refuses."""


def of(setting: Setting, names: tuple[str, ...] = NAMES) -> Outcome:
    if needs_another_user(setting) and not Path(SYSTEM_PYTHON).exists():
        pytest.skip(f"no Python that an ordinary user can run: {SYSTEM_PYTHON} is missing")
    found = outcome(setting, names)
    if found.report.level != setting.level:
        pytest.skip(f"level {setting.level} doesn't work on this machine")
    return found


@pytest.mark.parametrize("setting", SETTINGS, ids=str)
def test_an_attempt_is_refused_unless_the_report_owns_up_to_it(setting: Setting) -> None:
    found = of(setting)
    gaps = "; ".join(found.report.gaps)
    owned_up_to = {name for name in NAMES if any(word in gaps for word in GAPS.get(name, ()))}
    escaped = {name for name, result in found.results.items() if result == "escaped"}
    assert owned_up_to - escaped == set(), "a gap that is named isn't one any more"
    not_refused = {
        name: found.results[name] for name in NAMES
        if name not in owned_up_to and not found.results[name].startswith("refused: ")
    }
    assert not_refused == {}, gaps


@pytest.mark.parametrize("setting", SETTINGS, ids=str)
def test_what_is_outside_is_as_it_was(setting: Setting) -> None:
    found = of(setting)
    assert found.damaged <= {name for name, result in found.results.items() if result == "escaped"}


@pytest.mark.parametrize("setting", SETTINGS, ids=str)
def test_ordinary_work_is_possible_inside(setting: Setting) -> None:
    assert of(setting).is_usable


@pytest.mark.parametrize("setting", SETTINGS, ids=str)
def test_the_environment_is_the_commands_and_a_private_home(setting: Setting) -> None:
    environment = dict(of(setting).environment)
    assert environment.pop("HOME") != os.path.expanduser("~")
    environment.pop("TMPDIR", None)
    environment.pop("PWD", None)  # bubblewrap tells the working directory
    assert set(environment) <= {"PATH", "LANG", "TERM", "CODESPACE_EXEC", "LC_CTYPE"}


@pytest.mark.parametrize("setting", [Setting(1, is_root) for is_root in users()], ids=str)
def test_without_a_sandbox_the_same_attempts_succeed(setting: Setting) -> None:
    found = of(setting, AT_LEVEL_1)
    failed = {name: found.results[name] for name in AT_LEVEL_1 if found.results[name] != "escaped"}
    assert failed == {}, "an attempt that always fails would prove nothing"
    assert found.report.gaps == ("files outside the workspace", "network", "other processes of this user")
