"""Opening beneath a root: both ways of it refuse the same things with the same error numbers."""

import errno
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from adapters import beneath
from codespace_es.vocabulary.errors import ErrorCode


@pytest.fixture(params=["kernel", "walk"])
def root_fd(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    if request.param == "walk":
        monkeypatch.setattr(beneath, "kernel_has_openat2", lambda: False)
    elif not beneath.kernel_has_openat2():
        pytest.skip("this kernel has no openat2")
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "b" / "f").write_text("x")
    os.symlink("a", tmp_path / "link")
    os.symlink("b", tmp_path / "a" / "inner")
    os.symlink("b/f", tmp_path / "a" / "leaf")
    descriptor = beneath.open_root(str(tmp_path))
    yield descriptor
    os.close(descriptor)


@pytest.mark.parametrize("flags", [os.O_RDONLY, os.O_PATH, os.O_RDONLY | os.O_DIRECTORY, os.O_WRONLY])
@pytest.mark.parametrize(
    ("path", "number"),
    [("link/b/f", errno.ELOOP), ("a/inner", errno.ELOOP), ("a/inner/f", errno.ELOOP), ("a/leaf", errno.ELOOP),
     ("a/b/f/x", errno.ENOTDIR), ("a/b/f/", errno.ENOTDIR), ("a/none", errno.ENOENT), ("none/x", errno.ENOENT),
     ("/etc", errno.EXDEV), ("a/../a", errno.EXDEV), ("a\0", errno.EINVAL), ("\ud800", errno.EILSEQ)],
)
def test_what_can_not_be_opened_is_refused_with_its_number(root_fd: int, path: str, number: int, flags: int) -> None:
    with pytest.raises(OSError) as refusal:  # noqa: PT011 (the number is what is asked)
        os.close(beneath.open_beneath(root_fd, path, flags))
    assert refusal.value.errno == number


def test_a_file_is_made_with_the_mode_asked_for_and_closes_on_exec(root_fd: int, tmp_path: Path) -> None:
    descriptor = beneath.open_beneath(root_fd, "a/new", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    assert os.get_inheritable(descriptor) is False
    os.close(descriptor)
    assert (tmp_path / "a" / "new").stat().st_mode & 0o777 == 0o600


def test_a_parent_is_a_directory_that_can_be_flushed(root_fd: int, tmp_path: Path) -> None:
    for path, directory in (("a/b/f", tmp_path / "a" / "b"), ("top", tmp_path)):
        descriptor, leaf = beneath.open_parent(root_fd, path)
        os.fsync(descriptor)
        assert (os.fstat(descriptor).st_ino, leaf) == (directory.stat().st_ino, Path(path).name)
        os.close(descriptor)


def test_no_descriptor_is_left_open(root_fd: int) -> None:
    def opened() -> int:
        return len(os.listdir("/proc/self/fd"))

    before = opened()
    for path in ("a/b/f", "a/leaf", "link/b/f", "a/b/f/x", "none"):
        for flags in (os.O_RDONLY, os.O_PATH):
            try:
                os.close(beneath.open_beneath(root_fd, path, flags))
            except OSError:
                continue
    assert opened() == before


@pytest.mark.parametrize(
    ("number", "code"),
    [(errno.EXDEV, ErrorCode.PATH_ESCAPE), (errno.ELOOP, ErrorCode.SYMLINK_REJECTED),
     (errno.ENOTDIR, ErrorCode.PATH_NOT_DIRECTORY), (errno.ENOENT, ErrorCode.FILE_NOT_FOUND),
     (errno.ENXIO, ErrorCode.SPECIAL_FILE_REJECTED), (errno.EACCES, ErrorCode.FILE_OPERATION_FAILED)],
)
def test_an_error_of_the_system_becomes_a_code_and_names_the_path(number: int, code: ErrorCode) -> None:
    error = beneath.path_error(OSError(number, os.strerror(number)), "caf\udce9/x")
    assert (error.code, error.detail) == (code, {"path": "caf\\xe9/x"})
    assert error.message.encode()


@pytest.mark.parametrize("has_openat2", [True, False], ids=["kernel", "walk"])
def test_a_root_is_never_reached_through_a_link(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, has_openat2: bool
) -> None:
    if has_openat2 and not beneath.kernel_has_openat2():
        pytest.skip("this kernel has no openat2")
    monkeypatch.setattr(beneath, "kernel_has_openat2", lambda: has_openat2)
    (tmp_path / "a" / "b").mkdir(parents=True)
    os.symlink("a", tmp_path / "link")
    os.symlink("b", tmp_path / "a" / "leaf")
    os.close(beneath.open_root(str(tmp_path / "a" / "b")))
    os.close(beneath.open_root("/"))
    for path, number in (("link", errno.ELOOP), ("link/b", errno.ELOOP), ("a/leaf", errno.ELOOP), ("c", errno.ENOENT)):
        with pytest.raises(OSError) as refusal:  # noqa: PT011 (the number is what is asked)
            beneath.open_root(str(tmp_path / path))
        assert refusal.value.errno == number
