"""Files that the operator names, or keeps, are regular ones: a FIFO or a device is told of at once, not waited for."""

import os
from pathlib import Path

import pytest

from support.cli_project import Project

WHERE = [
    "config", "linked config", "device", "input.key", "codespace.db.checkpoint-key", "against", "checkpoint", "crl",
]


@pytest.mark.parametrize("where", WHERE)
def test_what_is_no_regular_file_is_an_error_at_once(tmp_path: Path, where: str) -> None:
    project = Project.make(tmp_path)
    project.data.mkdir(mode=0o700)
    pipe = tmp_path / "pipe.toml"
    os.mkfifo(pipe)
    environment: dict[str, str] = {}
    command = ["serve", "--root", str(project.root)]
    match where:
        case "config":
            command += ["--config", str(pipe)]
        case "linked config" | "device":
            (tmp_path / "link.json").symlink_to("/dev/zero" if where == "device" else pipe)
            environment = {"CODESPACE_CONFIG": str(tmp_path / "link.json")}
        case "input.key":
            os.mkfifo(project.data / where)
        case "codespace.db.checkpoint-key":
            assert project.run(*command).returncode == 0
            os.mkfifo(project.data / where)
            command = ["verify", "--checkpoint", str(tmp_path / "new.json")]
        case "crl":
            environment = {"CODESPACE_STORE": f"postgresql://me@127.0.0.1:1/log?sslmode=verify-full&sslcrl={pipe}"}
        case _:
            assert project.run(*command).returncode == 0
            command = ["verify", f"--{where}", str(pipe)]
    done = project.run(*command, environment=environment)
    assert (done.returncode, done.stdout) == (2, ""), done
    assert "n't a regular file" in done.stderr
    assert done.stderr.count("\n") == 1
