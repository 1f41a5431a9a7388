"""A runner behind a socket serves on, whatever befalls one of those who connect."""

import sys
from pathlib import Path

import anyio
import pytest

from adapters.runner.uds_runner import open_uds_runner
from codespace_es.ports.runner import RunnerLostError
from support.process_runner import Locks, Workshop, uds_runner, until_output

pytestmark = pytest.mark.anyio


async def test_a_spawner_that_cant_be_started_costs_nobody_else_his_commands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    locks = Locks(tmp_path / "locks")
    with anyio.fail_after(30):
        async with uds_runner(tmp_path) as runner:
            workshop = Workshop(runner, tmp_path, locks)
            living = await workshop.run("cat", stdin="pipe")
            other_lock = locks.take("other")
            async with open_uds_runner(
                str(tmp_path / "r" / "s"), instance_lock=other_lock, processes_max=4
            ) as other:
                late = Workshop(other, tmp_path, locks)
                with monkeypatch.context() as patch:
                    patch.setattr(sys, "executable", "/missing/python")
                    with pytest.raises(RunnerLostError):
                        await late.run("true")
                assert "a spawner can't be started" in capfd.readouterr().err
                assert (await late.ended("echo", "hi")).tail == b"hi\n"
            other_lock.release()
            await living.write(b"word", is_eof=True)
            assert await until_output(living, b"word") == b"word"
            await living.wait()
