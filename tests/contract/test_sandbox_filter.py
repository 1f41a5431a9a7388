"""The filter of system calls, run here instruction by instruction: also for the architecture that isn't this one."""

import errno
import socket
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.spawner import seccomp
from adapters.spawner.seccomp_calls import ARCHITECTURES, NOT_PERMITTED, NUMBERS, SET_ATTRIBUTES

ALLOWED, KILLED = 0x7FFF0000, 0x80000000
MACHINES = sorted(ARCHITECTURES)
CLONE_NEWUSER = 0x10000000


def verdict(program: bytes, machine: int, number: int, *arguments: int) -> int:
    """Return what the kernel's machine would: it loads words of `struct seccomp_data` and jumps forwards only."""
    values = [*arguments, *([0] * (6 - len(arguments)))]
    call = struct.pack("=IIQ6Q", number, machine, 0, *values)
    at = accumulator = 0
    while True:
        code, if_true, if_false, operand = struct.unpack_from("=HBBI", program, at * 8)
        at += 1
        match code:
            case 0x20:
                accumulator = struct.unpack_from("=I", call, operand)[0]
            case 0x15:
                at += if_true if accumulator == operand else if_false
            case 0x35:
                at += if_true if accumulator >= operand else if_false
            case 0x45:
                at += if_true if accumulator & operand else if_false
            case 0x06:
                return int(operand)
            case _:
                raise AssertionError(f"no such instruction: {code:#x}")


def refused(code: int) -> int:
    return 0x00050000 | code


@pytest.mark.parametrize("machine", MACHINES)
def test_each_listed_call_is_refused(machine: str) -> None:
    program = seccomp.assemble(machine, families=None, has_attributes=False)
    expected = dict.fromkeys(NOT_PERMITTED, errno.EPERM) | dict.fromkeys(SET_ATTRIBUTES, errno.EOPNOTSUPP)
    expected["clone3"] = errno.ENOSYS
    known = {call: code for call, code in expected.items() if call in NUMBERS[machine]}
    assert set(expected) - set(known) <= {"iopl", "ioperm"}, "only x86 has them"
    for call, code in known.items():
        assert verdict(program, ARCHITECTURES[machine], NUMBERS[machine][call]) == refused(code), call


@pytest.mark.parametrize("machine", MACHINES)
def test_attributes_may_be_set_where_files_outside_are_out_of_reach(machine: str) -> None:
    program = seccomp.assemble(machine, families=None, has_attributes=True)
    for call in SET_ATTRIBUTES:
        assert verdict(program, ARCHITECTURES[machine], NUMBERS[machine][call]) == ALLOWED


@pytest.mark.parametrize("machine", MACHINES)
@given(number=st.integers(0, 0x3FFFFFFF), arguments=st.lists(st.integers(0, 2**64 - 1), max_size=6))
def test_every_other_call_is_allowed(machine: str, number: int, arguments: list[int]) -> None:
    program = seccomp.assemble(machine, families=None, has_attributes=False)
    if number not in NUMBERS[machine].values():
        assert verdict(program, ARCHITECTURES[machine], number, *arguments) == ALLOWED


@pytest.mark.parametrize("machine", MACHINES)
@given(flags=st.integers(0, 2**64 - 1))
def test_a_user_namespace_is_refused_whatever_else_is_asked_for(machine: str, flags: int) -> None:
    program = seccomp.assemble(machine, families=None, has_attributes=True)
    for call in ("clone", "unshare"):
        expected = refused(errno.EPERM) if flags & CLONE_NEWUSER else ALLOWED
        assert verdict(program, ARCHITECTURES[machine], NUMBERS[machine][call], flags) == expected


@pytest.mark.parametrize("machine", MACHINES)
@given(family=st.integers(0, 64), high=st.integers(0, 2**32 - 1))
def test_only_the_allowed_families_get_a_socket(machine: str, family: int, high: int) -> None:
    """The kernel looks at the low half of the argument alone, and so does the filter."""
    program = seccomp.assemble(machine, families=seccomp.NO_NETWORK_FAMILIES, has_attributes=True)
    expected = ALLOWED if family == socket.AF_UNIX else refused(errno.EPERM)
    asked = high << 32 | family
    assert verdict(program, ARCHITECTURES[machine], NUMBERS[machine]["socket"], asked) == expected


@pytest.mark.parametrize("machine", MACHINES)
@given(high=st.integers(0, 2**32 - 1), request=st.integers(0, 0xFFFF))
def test_input_to_a_terminal_cant_be_faked(machine: str, high: int, request: int) -> None:
    program = seccomp.assemble(machine, families=None, has_attributes=True)
    for asked in (0x5412, 0x541C, request):
        expected = refused(errno.EPERM) if asked in (0x5412, 0x541C) else ALLOWED
        number = NUMBERS[machine]["ioctl"]
        assert verdict(program, ARCHITECTURES[machine], number, 1, high << 32 | asked) == expected


@pytest.mark.parametrize("machine", MACHINES)
@given(other=st.integers(0, 2**32 - 1), number=st.integers(0, 2**32 - 1))
def test_calls_in_the_way_of_another_machine_end_the_process(machine: str, other: int, number: int) -> None:
    program = seccomp.assemble(machine, families=None, has_attributes=True)
    if other != ARCHITECTURES[machine]:
        assert verdict(program, other, number) == KILLED
    if machine == "x86_64":
        assert verdict(program, ARCHITECTURES[machine], number | 0x40000000) == KILLED


@pytest.mark.parametrize("machine", MACHINES)
def test_the_filter_is_as_short_as_the_kernel_takes_and_jumps_within_itself(machine: str) -> None:
    program = seccomp.assemble(machine, families=seccomp.OWN_NETWORK_FAMILIES, has_attributes=False)
    count = len(program) // 8
    assert count <= 4096
    for at in range(count):
        code, if_true, if_false, _ = struct.unpack_from("=HBBI", program, at * 8)
        assert at + 1 + max(if_true, if_false) < count or code == 0x06
