"""The files port, reading: windows, lines, images, versions, and each refusal in its order."""

import hashlib
import os
import resource
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters import beneath
from adapters.files import reading
from adapters.files.workspace_files import DirectoryFilesByRoot
from codespace_es.ports.files import RootIdentity, WorkspaceFiles
from codespace_es.vocabulary.errors import CodespaceError, ErrorCode
from codespace_es.vocabulary.limits import MIB


@pytest.fixture(params=["kernel", "walk"], autouse=True)
def way_of_opening(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything holds with `openat2` and without it."""
    if request.param == "walk":
        monkeypatch.setattr(beneath, "kernel_has_openat2", lambda: False)
    elif not beneath.kernel_has_openat2():
        pytest.skip("this kernel has no openat2")


@pytest.fixture
def files(tmp_path: Path) -> WorkspaceFiles:
    root = tmp_path / "root"
    root.mkdir()
    return DirectoryFilesByRoot().open(str(root))


@pytest.fixture
def root(tmp_path: Path, files: WorkspaceFiles) -> Path:
    return tmp_path / "root"


def code_of(call: object, *arguments: object, **named: object) -> ErrorCode:
    with pytest.raises(CodespaceError) as refusal:
        call(*arguments, **named)  # type: ignore[operator]
    return refusal.value.code


def sha256(content: bytes) -> str:
    return "sha256:" + hashlib.sha256(content).hexdigest()


@pytest.mark.parametrize("path", ["", "/etc/passwd", "..", "../x", "a/../../x", "a\0b", "\ud800", "a\udcff"])
def test_a_path_that_leaves_the_root_as_text_is_an_escape(files: WorkspaceFiles, path: str) -> None:
    assert code_of(files.normalize, path) is ErrorCode.PATH_ESCAPE
    assert code_of(files.read_window, path, offset=0, limit=1) is ErrorCode.PATH_ESCAPE
    assert code_of(files.version, path) is ErrorCode.PATH_ESCAPE


@pytest.mark.parametrize(
    ("path", "folded"), [("a", "a"), ("./a//b/", "a/b"), ("a/../b", "b"), ("a/..", "."), ("x/./y/..", "x")]
)
def test_a_path_is_folded_as_text(files: WorkspaceFiles, path: str, folded: str) -> None:
    assert files.normalize(path) == folded


@pytest.fixture
def zoo(root: Path, tmp_path: Path) -> Path:
    """A root with everything in it that isn't a plain file."""
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret").write_text("secret")
    (root / "dir").mkdir()
    (root / "file").write_text("x")
    os.symlink(tmp_path / "outside" / "secret", root / "out_link")
    os.symlink("file", root / "in_link")
    os.symlink(tmp_path / "outside", root / "dir_link")
    os.symlink("nowhere", root / "dangling")
    os.mkfifo(root / "fifo")
    return root


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("out_link", ErrorCode.SYMLINK_REJECTED), ("in_link", ErrorCode.SYMLINK_REJECTED),
        ("dir_link/secret", ErrorCode.SYMLINK_REJECTED), ("dangling", ErrorCode.SYMLINK_REJECTED),
        ("dir_link/none/x", ErrorCode.SYMLINK_REJECTED), ("file/x", ErrorCode.PATH_NOT_DIRECTORY),
        ("file/x/y", ErrorCode.PATH_NOT_DIRECTORY), ("none", ErrorCode.FILE_NOT_FOUND),
        ("none/x", ErrorCode.FILE_NOT_FOUND), ("dir", ErrorCode.SPECIAL_FILE_REJECTED),
        (".", ErrorCode.SPECIAL_FILE_REJECTED), ("fifo", ErrorCode.SPECIAL_FILE_REJECTED),
        ("x" * 300, ErrorCode.FILE_OPERATION_FAILED), ("\\xff", ErrorCode.FILE_NOT_FOUND),
    ],
)
def test_what_is_no_plain_file_is_refused_with_its_code(
    files: WorkspaceFiles, zoo: Path, path: str, code: ErrorCode
) -> None:
    assert code_of(files.read_window, path, offset=0, limit=9) is code
    assert code_of(files.read_lines, path, line_start=1, line_end=None, limit=9) is code
    if code is ErrorCode.FILE_NOT_FOUND:
        assert files.version(path) == "absent"
        assert files.read_image(path, bytes_max=9) is None
    else:
        assert code_of(files.version, path) is code
        assert code_of(files.read_image, path, bytes_max=9) is code


def test_a_socket_is_special(files: WorkspaceFiles, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(root)
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind("sock")
        assert code_of(files.read_window, "sock", offset=0, limit=9) is ErrorCode.SPECIAL_FILE_REJECTED


@pytest.mark.skipif(not Path("/proc/version").exists(), reason="no /proc here")
def test_a_file_whose_content_is_made_up_while_it_is_read_is_special() -> None:
    proc = DirectoryFilesByRoot().open("/proc")
    assert code_of(proc.read_window, "version", offset=0, limit=9) is ErrorCode.SPECIAL_FILE_REJECTED


def test_a_missing_root_is_a_failure_of_the_system(files: WorkspaceFiles, root: Path) -> None:
    assert files.identity() == RootIdentity(root.stat().st_dev, root.stat().st_ino)
    root.rename(root.with_name("moved"))
    assert code_of(files.identity) is ErrorCode.FILE_OPERATION_FAILED
    assert code_of(files.read_window, "a", offset=0, limit=1) is ErrorCode.FILE_OPERATION_FAILED
    assert code_of(files.version, "a") is ErrorCode.FILE_OPERATION_FAILED
    assert code_of(files.find, None) is ErrorCode.FILE_OPERATION_FAILED


def test_a_replaced_root_has_another_identity(files: WorkspaceFiles, root: Path) -> None:
    before = files.identity()
    root.rename(root.with_name("moved"))
    root.mkdir()
    assert files.identity() != before


def test_a_name_that_only_looks_the_same_is_suggested(files: WorkspaceFiles, root: Path) -> None:
    (root / "Doc").mkdir()
    (root / "Doc" / "cafe\u0301.md").write_text("x")
    (root / "a\u202fb.txt").write_text("y")
    with pytest.raises(CodespaceError) as refusal:
        files.read_window("doc/caf\u00e9.md", offset=0, limit=1)
    assert refusal.value.code is ErrorCode.FILE_NOT_FOUND
    assert refusal.value.detail == {"path": "doc/caf\u00e9.md", "did_you_mean": "Doc/cafe\u0301.md"}
    assert files.did_you_mean("a b.txt") == "a\u202fb.txt"
    assert files.did_you_mean("other") is None
    assert files.read_window("a\u202fb.txt", offset=0, limit=9).content == "y"


def test_missing_parents_are_named_outermost_first(files: WorkspaceFiles, zoo: Path) -> None:
    assert files.missing_directories("dir/a/b/c") == ("dir/a", "dir/a/b")
    assert files.missing_directories("dir/a") == ()
    assert files.missing_directories("top") == ()
    assert code_of(files.missing_directories, "file/x") is ErrorCode.PATH_NOT_DIRECTORY
    assert code_of(files.missing_directories, "dir_link/x") is ErrorCode.SYMLINK_REJECTED


def test_an_image_has_content_mode_and_links(files: WorkspaceFiles, root: Path) -> None:
    (root / "f").write_bytes(b"\xef\xbb\xbfa\r\n")
    (root / "f").chmod(0o750)
    os.link(root / "f", root / "g")
    image = files.read_image("f", bytes_max=6)
    assert image is not None
    assert (image.content, image.mode, image.links) == (b"\xef\xbb\xbfa\r\n", 0o750, 2)
    assert code_of(files.read_image, "f", bytes_max=5) is ErrorCode.INVALID_PATCH


def test_past_the_end_a_window_is_empty(files: WorkspaceFiles, root: Path) -> None:
    (root / "f").write_text("abc")
    window = files.read_window("f", offset=9, limit=5)
    assert (window.content, window.byte_count, window.offset, window.content_lossy) == ("", 0, 9, False)
    assert window.version == sha256(b"abc")


def test_bytes_that_are_not_utf8_are_replaced_and_said(files: WorkspaceFiles, root: Path) -> None:
    (root / "f").write_bytes(b"ok \x92 end\n")
    window = files.read_window("f", offset=0, limit=99)
    assert (window.content, window.byte_count, window.content_lossy) == ("ok \ufffd end\n", 9, True)


@given(content=st.text(max_size=60), limit=st.integers(4, 20), stream=st.booleans())
def test_windows_read_in_sequence_give_the_file_back(
    files: WorkspaceFiles, root: Path, content: str, limit: int, stream: bool
) -> None:
    raw = content.encode()
    (root / "f").write_bytes(raw)
    pieces, offset = [], 0
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reading, "STREAM_BYTES", 7 if stream else MIB)
        while True:
            window = files.read_window("f", offset=offset, limit=limit)
            assert window.version == sha256(raw)
            assert window.line_count == raw.count(b"\n") + (raw[-1:] not in {b"\n", b""})
            assert not window.content_lossy
            assert window.byte_count == len(window.content.encode()) <= limit
            pieces.append(window.content)
            offset += window.byte_count
            if offset >= window.size_bytes:
                break
            assert window.byte_count > 0
    assert "".join(pieces) == content


@given(
    lines=st.lists(st.sampled_from([b"", b"a", b"long line", "é\u2028ö".encode(), b"x\r"]), max_size=8),
    has_last_end=st.booleans(), start=st.integers(-9, 9).filter(bool), length=st.integers(0, 9) | st.none(),
    limit=st.integers(4, 40), stream=st.booleans(),
)
def test_lines_are_those_of_a_naive_split(  # noqa: PLR0917 (what is drawn)
    files: WorkspaceFiles, root: Path, lines: list[bytes], has_last_end: bool, start: int, length: int | None,
    limit: int, stream: bool,
) -> None:
    raw = b"\n".join(lines) + (b"\n" if has_last_end and lines else b"")
    (root / "f").write_bytes(raw)
    kept = [line + b"\n" for line in raw.split(b"\n")]
    kept[-1] = kept[-1][:-1]
    kept = [line for line in kept if line]
    first = start if start > 0 else max(len(kept) + start + 1, 1)
    line_end = None if length is None else first + length
    wanted = kept[first - 1 : line_end]
    offset = sum(map(len, kept[: first - 1]))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reading, "STREAM_BYTES", 7 if stream else MIB)
        window = files.read_lines("f", line_start=start, line_end=line_end, limit=limit)
    while len(wanted) > 1 and sum(map(len, wanted)) > limit:
        wanted.pop()
    expected = b"".join(wanted)[:limit].decode(errors="ignore")
    assert (window.content, window.offset, window.version) == (expected, offset, sha256(raw))
    assert window.line_count == len(kept)
    assert (window.line_start, window.line_end) == ((first, first + len(wanted) - 1) if wanted else (None, None))


@pytest.mark.parametrize(("start", "end"), [(0, None), (1, 0), (3, 2), (1, -1)])
def test_a_range_of_lines_that_is_none_is_an_invalid_argument(
    files: WorkspaceFiles, root: Path, start: int, end: int | None
) -> None:
    (root / "f").write_text("a\n")
    assert code_of(files.read_lines, "f", line_start=start, line_end=end, limit=9) is ErrorCode.INVALID_ARGUMENT


def test_a_directory_swapped_for_a_link_never_gives_what_is_outside(
    files: WorkspaceFiles, root: Path, tmp_path: Path
) -> None:
    for place, text in ((root / "d", "inside"), (tmp_path / "out", "OUTSIDE")):
        place.mkdir()
        (place / "f").write_text(text)
    os.symlink(tmp_path / "out", root / "link")
    is_over = threading.Event()

    def swap() -> None:
        while not is_over.is_set():
            os.rename(root / "d", root / "aside")
            os.rename(root / "link", root / "d")
            os.rename(root / "d", root / "link")
            os.rename(root / "aside", root / "d")

    swapping = threading.Thread(target=swap)
    swapping.start()
    seen: set[object] = set()
    try:
        for _ in range(3_000):
            try:
                seen.add(files.read_window("d/f", offset=0, limit=99).content)
            except CodespaceError as error:
                seen.add(error.code)
    finally:
        is_over.set()
        swapping.join()
    assert seen <= {"inside", ErrorCode.SYMLINK_REJECTED, ErrorCode.FILE_NOT_FOUND}
    assert "inside" in seen


def test_a_file_that_keeps_changing_while_it_is_read_is_a_failure(
    files: WorkspaceFiles, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (root / "f").write_text("x")
    plain_pread = os.pread

    def pread_then_grow(descriptor: int, length: int, offset: int) -> bytes:
        content = plain_pread(descriptor, length, offset)
        with (root / "f").open("a") as file:
            file.write("y")
        return content

    monkeypatch.setattr(os, "pread", pread_then_grow)
    assert code_of(files.read_window, "f", offset=0, limit=9) is ErrorCode.FILE_OPERATION_FAILED


def test_readers_of_a_file_that_is_replaced_see_whole_versions(files: WorkspaceFiles, root: Path) -> None:
    contents = [letter * 5_000 for letter in "abc"]
    versions = {sha256(content.encode()): content for content in contents}
    (root / "f").write_text(contents[0])
    is_over = threading.Event()

    def replace() -> None:
        while not is_over.is_set():
            for content in contents:
                (root / "new").write_text(content)
                os.replace(root / "new", root / "f")

    replacing = threading.Thread(target=replace)
    replacing.start()
    try:
        for _ in range(500):
            window = files.read_window("f", offset=0, limit=MIB)
            assert versions[window.version] == window.content
    finally:
        is_over.set()
        replacing.join()


_BOUNDED = """
import resource, sys
sys.path.insert(0, "src")
from adapters.files.workspace_files import DirectoryFilesByRoot
files = DirectoryFilesByRoot().open(sys.argv[1])
files.version("small")
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
files.version("large"); files.read_lines("large", line_start=-1, line_end=None, limit=10)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


def test_a_large_file_is_streamed_in_bounded_memory(files: WorkspaceFiles, root: Path) -> None:
    (root / "small").write_text("x")
    with (root / "large").open("wb") as file:
        file.truncate(200 * MIB)
    # `resource` counts KiB on Linux.
    grown = subprocess.run([sys.executable, "-c", _BOUNDED, str(root)], capture_output=True, text=True, check=True)
    assert resource.getpagesize() > 0
    assert int(grown.stdout) < 20 * 1024
