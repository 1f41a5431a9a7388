"""The offline comparison of a directory with the log: every file is what its last operation left there."""

from pathlib import Path

import anyio
import pytest
from scripted_log import open_server, write_a_life

from adapters.log.reader import LogReader
from codespace_es.event_catalogue import CATALOGUE
from codespace_es.vocabulary.file_change import FileFinding, digest_of
from replay.workspace_check import WorkspaceReport, check_workspace


def check(log: Path, root: Path, **options) -> WorkspaceReport:
    with LogReader(log, CATALOGUE) as reader:
        return check_workspace(reader, root, **options)


@pytest.fixture
def root(tmp_path):
    directory = tmp_path / "root"
    directory.mkdir()
    return directory


@pytest.fixture
def log(tmp_path, root):
    """Give a log whose last word on `a.txt` is `two`, after a patch that was rolled back, and on `b.txt` absence."""

    async def write() -> None:
        async with open_server(tmp_path / "log.db", root=str(root)) as server:
            await server.start()
            await server.apply({"a.txt": (None, b"one\n"), "b.txt": (None, b"b\n")})
            await server.apply({"a.txt": (b"one\n", b"two\n")})
            await server.check({"a.txt": (b"two\n", b"three\n")})
            left = await server.mint({"a.txt": (b"two\n", b"four\n")})
            await server.finish(left, status="failed_rolled_back")
            await server.apply({"b.txt": (b"b\n", None)})
            await server.stop()

    anyio.run(write)
    return tmp_path / "log.db"


def put(path: Path, content: bytes, mode: int = 0o644) -> None:
    path.write_bytes(content)
    path.chmod(mode)


def test_files_as_the_log_left_them_are_right(log, root):
    put(root / "a.txt", b"two\n")
    assert check(log, root) == WorkspaceReport(is_ok=True, files=2, open_operations=(), problems=())


@pytest.mark.parametrize("content", [b"one\n", b"four\n"])
def test_another_recorded_image_is_a_problem(log, root, content):
    put(root / "a.txt", content)
    (problem,) = check(log, root).problems
    assert (problem.path, problem.found, problem.expected) == ("a.txt", digest_of(content), (digest_of(b"two\n"),))
    assert "another recorded image" in problem.problem


def test_a_content_that_was_never_recorded_is_a_problem_unless_somebody_edited_it(log, root):
    put(root / "a.txt", b"tw")
    (problem,) = check(log, root).problems
    assert "torn" in problem.problem
    assert check(log, root, edited={"a.txt"}).is_ok


def test_a_file_that_is_missing_or_back_again_is_a_problem(log, root):
    put(root / "b.txt", b"b\n")
    assert [problem.path for problem in check(log, root).problems] == ["a.txt", "b.txt"]


def test_a_link_or_directory_where_a_file_should_be_is_a_problem(log, root):
    put(root / "target", b"two\n")
    (root / "a.txt").symlink_to("target")
    (root / "b.txt").mkdir()
    assert [(each.path, each.found) for each in check(log, root).problems] == [
        ("a.txt", "not a file"), ("b.txt", "not a file"),
    ]


def test_other_permission_bits_are_a_problem_unless_they_are_not_compared(log, root):
    put(root / "a.txt", b"two\n", 0o600)
    (problem,) = check(log, root).problems
    assert problem.problem == "It has permission bits 600, not 644."
    assert check(log, root, is_mode_checked=False).is_ok


def test_a_temporary_file_that_was_left_behind_is_a_problem_once_all_is_settled(log, root):
    put(root / "a.txt", b"two\n")
    (root / "deep").mkdir()
    name = ".op-00000000-0000-4000-8000-000000000001.0.tmp"
    put(root / "deep" / name, b"")
    (problem,) = check(log, root).problems
    assert problem.path == f"deep/{name}"
    assert check(log, root, is_settled=False).is_ok


def test_files_of_an_open_operation_may_be_on_either_side_until_it_is_settled(tmp_path, root):
    operations = anyio.run(write_a_life, tmp_path / "log.db", str(root))
    for content in (b"one\n", b"five\n"):
        put(root / "a.txt", content)
        report = check(tmp_path / "log.db", root, is_settled=False)
        assert (report.is_ok, report.open_operations) == (True, (operations["open"],))
    put(root / "a.txt", b"six\n")
    assert not check(tmp_path / "log.db", root, is_settled=False).is_ok
    put(root / "a.txt", b"five\n")
    (problem,) = check(tmp_path / "log.db", root).problems
    assert (problem.path, problem.operation_id) == ("a.txt", operations["open"])


@pytest.mark.parametrize(("found", "version", "content", "is_ok"), [
    ("before", None, b"one\n", True),
    ("before", None, b"two\n", False),
    ("after", None, b"two\n", True),
    ("missing", None, None, True),
    ("missing", None, b"one\n", False),
    ("foreign", digest_of(b"user\n"), b"user\n", True),
    ("foreign", digest_of(b"user\n"), b"two\n", False),
    ("foreign", None, b"anything", True),
])
def test_an_end_that_says_what_it_found_is_believed(tmp_path, root, *, found, version, content, is_ok):
    async def write() -> None:
        async with open_server(tmp_path / "log.db", root=str(root)) as server:
            await server.start()
            operation = await server.mint({"a.txt": (b"one\n", b"two\n")})
            finding = FileFinding(path="a.txt", found=found, version=version)
            await server.finish(operation, status="unknown", findings=[finding])

    anyio.run(write)
    if content is not None:
        put(root / "a.txt", content)
    assert check(tmp_path / "log.db", root).is_ok == is_ok


def test_operations_in_other_directories_say_nothing_of_this_one(log, tmp_path):
    other = tmp_path / "other"
    other.mkdir()
    assert check(log, other) == WorkspaceReport(is_ok=True, files=0, open_operations=(), problems=())
