"""What can be known of a command before it is forked: each reason has its own words and the system's number."""

import errno
import resource
import subprocess
from pathlib import Path

import pytest

from adapters.spawner.executable import ARGUMENT_BYTES_MAX, UnusableError, arguments_bytes_max, usable_program
from support.bound import bound


def write(path: Path, content: bytes, mode: int = 0o755) -> Path:
    path.write_bytes(content)
    path.chmod(mode)
    return path


@pytest.mark.parametrize(("content", "mode", "number", "words"), [
    (b"#!/bin/sh\n", 0o644, errno.EACCES, "may not be executed"),
    (b"echo hi\n", 0o755, errno.ENOEXEC, "isn't a program"),
    (b"", 0o755, errno.ENOEXEC, "isn't a program"),
    (b"#!\n", 0o755, errno.ENOEXEC, "isn't a program"),
    (b"#!/nowhere/sh\n", 0o755, errno.ENOENT, "needs its interpreter"),
    (b"#!/etc/passwd\n", 0o755, errno.EACCES, "needs its interpreter"),
    (b"#!./program\n", 0o755, errno.ELOOP, "too many levels"),
])
def test_an_unusable_program_says_why(tmp_path: Path, content: bytes, mode: int, number: int, words: str) -> None:
    write(tmp_path / "program", content, mode)
    with pytest.raises(UnusableError, match=words) as caught:
        usable_program(["./program"], {}, str(tmp_path))
    assert caught.value.errno == number


def test_a_program_that_doesnt_exist_is_named(tmp_path: Path) -> None:
    with pytest.raises(UnusableError, match=r"\./gone doesn't exist") as caught:
        usable_program(["./gone"], {}, str(tmp_path))
    assert caught.value.errno == errno.ENOENT


def test_a_directory_isnt_a_program(tmp_path: Path) -> None:
    with pytest.raises(UnusableError, match="is a directory") as caught:
        usable_program(["./"], {}, str(tmp_path))
    assert caught.value.errno == errno.EISDIR


def test_a_missing_working_directory_isnt_a_missing_program(tmp_path: Path) -> None:
    with pytest.raises(UnusableError, match=r"working directory .* is missing") as caught:
        usable_program(["true"], {"PATH": "/bin:/usr/bin"}, str(tmp_path / "gone"))
    assert caught.value.errno == errno.ENOENT


def test_a_name_is_looked_up_in_the_commands_own_path(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    write(tmp_path / "bin" / "tool", b"#!/bin/sh\n")
    write(tmp_path / "here", b"#!/bin/sh\n")
    assert usable_program(["tool"], {"PATH": f"/nowhere:{tmp_path}/bin"}, str(tmp_path)) == f"{tmp_path}/bin/tool"
    assert usable_program(["./here"], {}, str(tmp_path)) == "./here"
    with pytest.raises(UnusableError, match=r"isn't in PATH .*did you mean"):
        usable_program(["here"], {"PATH": "/nowhere"}, str(tmp_path))
    write(tmp_path / "bin" / "unusable", b"#!/bin/sh\n", 0o644)
    with pytest.raises(UnusableError, match="may not be executed"):
        usable_program(["unusable"], {"PATH": f"{tmp_path}/bin"}, str(tmp_path))


def test_a_binary_for_another_loader_names_it(tmp_path: Path) -> None:
    binary = bytearray(Path("/bin/true").read_bytes())
    loader = binary.index(b"/lib64/ld-linux") if b"/lib64/ld-linux" in binary else binary.index(b"/lib/ld-")
    binary[loader : loader + 4] = b"/bil"
    write(tmp_path / "strange", bytes(binary))
    with pytest.raises(UnusableError, match="needs its interpreter"):
        usable_program(["./strange"], {}, str(tmp_path))


@pytest.mark.parametrize("text", ["a\0b", "\ud800"])
def test_what_no_argument_can_hold_is_refused(text: str) -> None:
    with pytest.raises(UnusableError, match="Argument 1") as caught:
        usable_program(["/bin/true", text], {}, "/")
    assert caught.value.errno == errno.EINVAL
    with pytest.raises(UnusableError, match="variable X"):
        usable_program(["/bin/true"], {"X": text}, "/")


def test_the_limit_of_one_argument_is_the_kernels() -> None:
    longest = "x" * (ARGUMENT_BYTES_MAX - 1)
    usable_program(["/bin/true", longest], {}, "/")
    assert subprocess.run(["/bin/true", longest], env={}, check=False).returncode == 0
    with pytest.raises(UnusableError, match=str(ARGUMENT_BYTES_MAX - 1)) as caught:
        usable_program(["/bin/true", longest + "x"], {}, "/")
    assert caught.value.errno == errno.E2BIG
    with pytest.raises(OSError) as refused:  # noqa: PT011 - its number is looked at
        subprocess.run(["/bin/true", longest + "x"], env={}, check=False)
    assert refused.value.errno == errno.E2BIG


def test_what_is_let_through_is_never_too_much_for_the_kernel() -> None:
    total = arguments_bytes_max()
    assert total <= max(resource.getrlimit(resource.RLIMIT_STACK)[0] // 4, 128 * 1024) or total <= 6 << 20
    word = "x" * 1015
    count = (total - len("/bin/true") - 9) // (1015 + 9)
    fitting = ["/bin/true", *[word] * count]
    assert usable_program(fitting, {}, "/") == "/bin/true"
    assert subprocess.run(fitting, env={}, check=False).returncode == 0
    with pytest.raises(UnusableError, match="together") as caught:
        usable_program([*fitting, *[word] * 8], {}, "/")
    assert caught.value.errno == errno.E2BIG


def test_a_program_that_may_only_be_executed_is_left_to_the_kernel(tmp_path: Path) -> None:
    write(tmp_path / "secret", b"nothing", 0o111)
    assert bound(lambda: usable_program(["./secret"], {}, str(tmp_path))) == "./secret"
