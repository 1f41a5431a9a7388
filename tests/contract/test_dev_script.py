"""`./dev` on a machine that lacks what it needs says so in one line, and leaves nothing behind."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("python", ["/bin/false", "/no/such/python", "an old one"])
def test_a_missing_or_unfit_python_is_named(tmp_path: Path, python: str) -> None:
    shutil.copy(ROOT / "dev", tmp_path / "dev")
    if python == "an old one":
        python = str(tmp_path / "python3")
        Path(python).write_text("#!/bin/sh\nexit 1\n")  # as it answers whether it is new enough
        Path(python).chmod(0o755)
    done = subprocess.run(
        [str(tmp_path / "dev"), "demo"], capture_output=True, text=True, check=False,
        env={**os.environ, "PYTHON": python})
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"./dev: {python} isn't Python 3.11 or newer with venv.")
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / ".venv").exists()
