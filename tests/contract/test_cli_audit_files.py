"""`diff` and `files`: what changed between two moments, and the files of an earlier one in a directory of their own."""

import json
import os
import stat
from pathlib import Path

import anyio
import pytest

from adapters.cli.restoring import UnusablePathError, write_file
from support.cli_project import Project, patch

MORE = "*** Begin Patch\n*** Add File: deep/er/new.txt\n+new\n*** Delete File: greeting.txt\n*** End Patch\n"


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    made = Project.make(tmp_path_factory.mktemp("files"))
    (made.root / "greeting.txt").chmod(0o755)

    async def live() -> None:
        async with made.opened() as opened:
            await patch(opened, key="first")
            await patch(opened, MORE, key="second")

    anyio.run(live)
    return made


def test_the_diff_between_two_operations_is_that_of_the_files(project: Project) -> None:
    told = json.loads(project.call("diff", "0..first", "--json").stdout)
    assert [(each["path"], each["summary"]) for each in told["files"]] == [("greeting.txt", "+1 -1")]
    assert told["topics"]["operation.finished.v1"] == 1
    plain = project.call("diff", "first..second")
    assert "\n-good day\n" in plain.stdout
    assert "\n+new\n" in plain.stdout
    assert "\x1b" not in plain.stdout
    only = project.call("diff", "first..", "--files")
    assert only.stdout.startswith("--- /dev/null\n+++ b/deep/er/new.txt\n")
    same = json.loads(project.call("diff", "first..first", "--json").stdout)
    assert (same["files"], same["streams"], same["topics"]) == ([], [], {})


@pytest.mark.parametrize("text", ["first", "second..first", "0..99", "x..y"])
def test_what_is_no_range_is_wrong_usage(project: Project, text: str) -> None:
    done = project.call("diff", text)
    assert (done.returncode, done.stdout) == (2, "")


def test_the_files_of_a_moment_are_listed_and_restored(project: Project, tmp_path: Path) -> None:
    rows = [line.split("\t") for line in project.call("files", "--at", "first").stdout.splitlines()]
    assert [(row[0], row[2]) for row in rows] == [("greeting.txt", "0755")]
    (workspace,) = json.loads(project.call("files", "--json").stdout)
    assert {file["path"]: file["version"] == "absent" for file in workspace["files"]} == {
        "deep/er/new.txt": False, "greeting.txt": True
    }
    done = project.call("files", "--at", "first", "--restore", str(tmp_path / "then"))
    assert done.returncode == 0, done.stderr
    restored = tmp_path / "then" / "greeting.txt"
    assert restored.read_text() == "good day\n"
    assert stat.S_IMODE(restored.stat().st_mode) == 0o755
    done = project.call("files", "--restore", str(tmp_path / "now"))
    assert (tmp_path / "now" / "deep" / "er" / "new.txt").read_text() == "new\n"
    assert sorted(os.listdir(tmp_path / "now")) == ["deep"]


def test_a_moment_is_never_restored_into_a_workspace_the_log_or_what_is_there(project: Project, tmp_path: Path) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine.txt").write_text("mine")
    (tmp_path / "link").symlink_to(project.root)
    before = sorted(path for path in project.root.parent.rglob("*") if path.name != "codespace.db-shm")
    for target in (project.root / "new", project.root, project.data / "x", tmp_path / "full", tmp_path / "link/sub"):
        done = project.call("files", "--restore", str(target))
        assert done.returncode == 2, target
        assert done.stderr.count("\n") == 1
    assert sorted(os.listdir(tmp_path)) == ["full", "link"]
    assert sorted(path for path in project.root.parent.rglob("*") if path.name != "codespace.db-shm") == before


@pytest.mark.parametrize("path", [
    "../out.txt", "/etc/out.txt", "a/../../out.txt", "", ".", "a//b", "a/", "in\0side", "there/x", "link/x", "there",
    "link", "n" * 300,
])
def test_a_path_of_a_hostile_log_never_leads_out(tmp_path: Path, path: str) -> None:
    (target := tmp_path / "target").mkdir()
    (outside := tmp_path / "outside").mkdir()
    (target / "there").write_text("there")
    (target / "link").symlink_to(outside)
    with pytest.raises(UnusablePathError):
        write_file(target, path, b"x", 0o4777)
    assert sorted(os.listdir(tmp_path)) == ["outside", "target"]
    assert os.listdir(outside) == []
    assert (target / "there").read_text() == "there"


def test_no_special_bits_are_restored(tmp_path: Path) -> None:
    write_file(tmp_path, "a", b"x", 0o6755)
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o755
