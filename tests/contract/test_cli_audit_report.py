"""`report`: one file, written once."""

from pathlib import Path

import anyio

from support.cli_project import Project, patch


def test_a_report_is_written_into_a_new_file_only(tmp_path: Path) -> None:
    project = Project.make(tmp_path)

    async def live() -> None:
        async with project.opened() as opened:
            await patch(opened, key="first")

    anyio.run(live)
    file = tmp_path / "report.html"
    done = project.call("report", "--output", str(file))
    assert done.returncode == 0, done.stderr
    assert "verdict\twhole and unchanged" in done.stdout
    text = file.read_text()
    assert "good day" in text
    assert text.endswith("</html>\n")
    again = project.call("report", "--output", str(file))
    assert (again.returncode, file.read_text()) == (2, text)
    assert project.call("report", "..first", "--session", "tester", "--output", str(file), "--force").returncode == 0
    assert "session tester" in file.read_text()
    assert project.call("report", "first", "--output", str(tmp_path / "x.html")).returncode == 2
    assert project.call("report", "--output", str(tmp_path / "no" / "x.html")).returncode == 2
