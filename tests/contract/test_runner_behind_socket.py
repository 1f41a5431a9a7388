"""A runner behind a socket serves on, whatever befalls one of those who connect."""

import json
import os
import socket
import sys
from contextlib import suppress
from pathlib import Path

import anyio
import pytest
from anyio.abc import Listener, SocketStream

from adapters.runner import spawner_link
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


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ({"kind": "hello", "boot_id": "x", "pid_namespace": 1}, "of another release: it speaks protocol 1"),
        ({"kind": "hello", "protocol": 99}, "of another release: it speaks protocol 99"),
        ({"kind": "good day"}, "isn't a runner"),
        (None, "isn't a runner"),
    ],
)
async def test_whoever_speaks_otherwise_there_is_refused_in_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: dict[str, object] | None, words: str
) -> None:
    monkeypatch.setattr(spawner_link, "_HELLO_SECONDS_MAX", 0.2)
    locks = Locks(tmp_path / "locks")
    path = tmp_path / "s"

    async def say(stream: SocketStream) -> None:
        async with stream:
            if said is not None:
                content = json.dumps(said).encode()
                await stream.send(len(content).to_bytes(4, "big") + content)
            with suppress(anyio.EndOfStream, anyio.BrokenResourceError):
                while True:
                    await stream.receive()

    async def serve(listener: Listener[SocketStream]) -> None:
        with anyio.CancelScope() as ending:
            endings.append(ending)
            await listener.serve(say)

    endings: list[anyio.CancelScope] = []
    lock = locks.take("instance")
    with anyio.fail_after(30):
        async with await anyio.create_unix_listener(path) as listener, anyio.create_task_group() as tasks:
            tasks.start_soon(serve, listener)
            async with open_uds_runner(str(path), instance_lock=lock, processes_max=4) as runner:
                for _ in range(2):
                    with pytest.raises(RunnerLostError, match=words):
                        await Workshop(runner, tmp_path, locks).run("true")
            endings[0].cancel()
    lock.release()



async def test_whoever_finds_its_socket_finds_somebody_who_listens(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[str] = []
    link = os.link

    def try_it(own_name: str, path: str) -> None:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.connect(own_name)
        assert not os.path.lexists(path)
        link(own_name, path)
        seen.extend(os.listdir(os.path.dirname(path)))

    monkeypatch.setattr(os, "link", try_it)
    with anyio.fail_after(30):
        async with uds_runner(tmp_path) as runner:
            end = await Workshop(runner, tmp_path, Locks(tmp_path / "locks")).ended("echo", "hi")
    assert end.tail == b"hi\n"
    assert len(seen) == 2
    assert os.listdir(tmp_path / "r") == []
