"""A checkpoint that was kept elsewhere tells whether the end of a log was cut off, or the log is another one."""

import json
import stat
from pathlib import Path

import anyio
import pytest

from support.cli_project import Project, patch

PYSQLITE = pytest.importorskip("pysqlite3.dbapi2")
BACK = "*** Begin Patch\n*** Update File: greeting.txt\n@@\n-good day\n+hello\n*** End Patch\n"


@pytest.fixture
def project(tmp_path: Path) -> Project:
    made = Project.make(tmp_path)
    anyio.run(live, made)
    return made


async def live(project: Project, text: str | None = None) -> None:
    async with project.opened() as opened:
        await patch(opened, *([] if text is None else [text]))


def cut(project: Project, count: int) -> None:
    """Take the newest `count` events away as if they had never been, with all that would tell of them."""
    connection = PYSQLITE.connect(project.data / "codespace.db")
    trigger = "events_refuse_delete"
    (made_by,) = connection.execute("SELECT sql FROM sqlite_master WHERE name = ?", (trigger,)).fetchone()
    connection.execute(f"DROP TRIGGER {trigger}")
    connection.execute("DELETE FROM events WHERE position > (SELECT max(position) FROM events) - ?", (count,))
    connection.execute("DELETE FROM open_items")
    connection.execute("DELETE FROM bodies WHERE stream_id NOT IN (SELECT stream_id FROM events)")
    connection.execute(made_by)
    connection.commit()
    connection.close()


def test_a_log_that_went_on_still_has_its_checkpoint(project: Project, tmp_path: Path) -> None:
    file = tmp_path / "kept.json"
    made = project.call("verify", "--checkpoint", str(file))
    assert made.returncode == 0, made.stderr
    anyio.run(live, project, BACK)
    later = project.call("verify", "--against", str(file), "--checkpoint", str(file))
    assert (later.returncode, later.stderr) == (0, "")
    assert json.loads(file.read_text())["position"] == json.loads(project.call("verify", "--json").stdout)["events"]
    key = project.data / "codespace.db.checkpoint-key"
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    assert sorted(each.name for each in tmp_path.iterdir()) == ["data", "kept.json", "project"]


def test_a_cut_off_end_is_told_by_an_earlier_checkpoint_alone(project: Project, tmp_path: Path) -> None:
    first = json.loads(project.call("verify", "--json").stdout)["events"]
    anyio.run(live, project, BACK)
    file = tmp_path / "kept.json"
    project.call("verify", "--checkpoint", str(file))
    grown = json.loads(project.call("verify", "--json").stdout)["events"]
    cut(project, grown - first)
    assert project.call("verify").returncode == 0, "without the checkpoint nothing tells"
    done = project.call("verify", "--against", str(file), "--json")
    assert done.returncode == 1
    assert [each["law"] for each in json.loads(done.stdout)["findings"]] == ["positions"]
    anyio.run(live, project)
    rewritten = project.call("verify", "--against", str(file), "--json")
    assert {each["law"] for each in json.loads(rewritten.stdout)["findings"]} <= {"chain", "positions"}
    assert rewritten.returncode == 1


@pytest.mark.parametrize("change", [{"position": 3}, {"hash": "0" * 64}, {"signature": ""}, {"software": "x"}])
def test_a_checkpoint_that_was_changed_proves_nothing(project: Project, tmp_path: Path, change: dict) -> None:
    file = tmp_path / "kept.json"
    project.call("verify", "--checkpoint", str(file))
    file.write_text(json.dumps({**json.loads(file.read_text()), **change}))
    done = project.call("verify", "--against", str(file))
    assert done.returncode == 1
    assert "signed" in done.stderr


def test_the_checkpoint_of_another_log_proves_nothing(project: Project, tmp_path: Path) -> None:
    other = Project.make(tmp_path / "other")
    anyio.run(live, other)
    file = tmp_path / "kept.json"
    other.call("verify", "--checkpoint", str(file))
    assert project.call("verify", "--against", str(file)).returncode == 1
    (other.data / "codespace.db.checkpoint-key").unlink()
    done = other.call("verify", "--against", str(file))
    assert done.returncode == 0
    assert "isn't checked" in done.stderr


def test_a_damaged_log_gets_no_checkpoint(project: Project, tmp_path: Path) -> None:
    cut(project, 2)
    file = tmp_path / "kept.json"
    assert project.call("verify", "--checkpoint", str(file)).returncode == 1
    assert not file.exists()


@pytest.mark.parametrize("content", [None, "", "{}", "[]", '{"format": 2}', "\0" * 100])
def test_what_is_no_checkpoint_is_neither_read_nor_replaced(
    project: Project, tmp_path: Path, content: str | None
) -> None:
    file = tmp_path / "other.json"
    if content is not None:
        file.write_text(content)
        assert project.call("verify", "--checkpoint", str(file)).returncode == 2
        assert file.read_text() == content
    assert project.call("verify", "--against", str(file)).returncode == 2
