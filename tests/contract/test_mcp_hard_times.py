"""A real server in hard times: full disks, a locked or deleted log, a replaced root, crowds, cancellations."""

import json
import os
import random
import resource
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest

from adapters.log.sqlite.connecting import driver
from codespace_es.vocabulary.limits import WAITERS_MAX
from support.stdio_client import SECONDS_MAX, RawClient, product, raw_client, read_log

pytestmark = pytest.mark.anyio


@pytest.fixture
def root(tmp_path: Path) -> Path:
    made = tmp_path / "ws"
    made.mkdir()
    (made / "a.txt").write_text("a\n")
    return made


@pytest.fixture
def command(tmp_path: Path, root: Path) -> list[str]:
    return product(tmp_path, f"demo={root}:workspace-write")


@pytest.fixture
async def client(tmp_path: Path, command: list[str]) -> AsyncIterator[RawClient]:
    async with raw_client(command, tmp_path) as connection:
        yield connection


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 4 MiB, where root may mount one."""
    mountpoint = tmp_path / "small"
    mountpoint.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(mountpoint)]
    if subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("no right to mount a small disk")
    yield mountpoint
    subprocess.run(["umount", "--lazy", str(mountpoint)], check=True)


def adding(*names: str, text: str = "x") -> dict[str, Any]:
    sections = "".join(f"*** Add File: {name}\n+{text}\n" for name in names)
    return {"workspace_id": "demo", "patch": f"*** Begin Patch\n{sections}*** End Patch\n"}


def tree(root: Path) -> dict[str, bytes]:
    return {str(file.relative_to(root)): file.read_bytes() for file in root.rglob("*") if file.is_file()}


async def test_a_deleted_data_directory_ends_the_server_before_it_promises_anything(
    tmp_path: Path, root: Path, command: list[str]
) -> None:
    before = tree(root)
    with anyio.fail_after(SECONDS_MAX):
        async with raw_client(command, tmp_path) as client:
            assert (await client.call("apply_patch", **adding("first.txt")))["status"] == "applied"
            before = tree(root)
            shutil.rmtree(tmp_path / "data")
            await client.start_call("lost", "apply_patch", **adding("lost.txt"), operation_key="lost")
            answer = await client.receive()
            assert await client.exit_code() == 2
        assert answer["result"]["structuredContent"]["code"] == "STORE_UNAVAILABLE"
        assert tree(root) == before
        assert "was removed or replaced" in read_log(tmp_path)
        async with raw_client(command, tmp_path) as client:
            again = await client.call("apply_patch", **adding("lost.txt"), operation_key="lost")
    assert (again["status"], again["replayed"]) == ("applied", False)


@pytest.mark.parametrize("replaced", ["holder/ws", "holder"], ids=["root", "parent"])
async def test_a_link_in_the_way_to_a_root_leads_nowhere(tmp_path: Path, replaced: str) -> None:
    holder, elsewhere, aside = tmp_path / "holder", tmp_path / "elsewhere", tmp_path / "aside"
    link = tmp_path / replaced
    for directory in (holder / "ws", elsewhere / "ws"):
        directory.mkdir(parents=True)
        (directory / "a.py").write_text("f(1)\n")
    asked = [
        ("apply_patch", adding("lost.txt")), ("read", {"workspace_id": "demo", "path": "a.py"}),
        ("find", {"workspace_id": "demo"}), ("search", {"workspace_id": "demo", "pattern": "f"}),
        ("ast_grep", {"workspace_id": "demo", "pat": "f($A)", "lang": "python"}),
        ("exec_command", {"workspace_id": "demo", "command": ["touch", "lost.txt"]}),
    ]
    with anyio.fail_after(SECONDS_MAX):
        async with raw_client(product(tmp_path, f"demo={holder / 'ws'}:workspace-write"), tmp_path) as client:
            made = await client.call("apply_patch", **adding("made.txt"))
            link.rename(aside)
            link.symlink_to(elsewhere / link.relative_to(holder))
            before = tree(elsewhere)
            answers = [await client.call(tool, **arguments) for tool, arguments in asked]
            undone = await client.call("operation_revert", operation_id=made["operation_id"])
            link.unlink()
            aside.rename(link)
            again = await client.call("apply_patch", **adding("again.txt"))
    codes = [answer["code"] for answer in answers]
    assert codes == [*["FILE_OPERATION_FAILED"] * 5, "PROCESS_SPAWN_FAILED"]
    assert all("symbolic link" in answer["message"] for answer in answers)
    assert undone["code"] == "REVERT_CONFLICT"
    assert tree(elsewhere) == before
    assert again["status"] == "applied"


async def test_a_locked_log_holds_up_patches_and_nothing_else(client: RawClient, tmp_path: Path, root: Path) -> None:
    outsider = driver.connect(tmp_path / "data" / "codespace.db", isolation_level=None)
    with anyio.fail_after(SECONDS_MAX):
        outsider.execute("BEGIN IMMEDIATE")
        await client.start_call("patch", "apply_patch", **adding("late.txt"), operation_key="late")
        assert (await client.call("read", workspace_id="demo", path="a.txt"))["content"] == "a\n"
        assert (await client.call("read", workspace_id="demo", path="../x"))["code"] == "PATH_ESCAPE"
        assert (await client.call("operation_status", operation_key="late"))["code"] == "OPERATION_NOT_FOUND"
        assert not (root / "late.txt").exists()
        outsider.execute("ROLLBACK")
        answer = await client.receive()
    outsider.close()
    assert answer["result"]["structuredContent"]["status"] == "applied"
    assert (root / "late.txt").exists()


async def test_a_full_disk_under_the_log_refuses_and_writes_nothing(
    tmp_path: Path, root: Path, command: list[str], small_disk: Path
) -> None:
    command[command.index("--data-dir") + 1] = str(small_disk / "data")
    before = tree(root)
    patch = adding("large.txt", text=os.urandom(400_000).hex())
    with anyio.fail_after(SECONDS_MAX):
        async with raw_client(command, tmp_path) as client:
            ballast = small_disk / "ballast"
            ballast.write_bytes(b"x" * 3_000_000)
            refusal = await client.call("apply_patch", **patch, operation_key="large")
            assert refusal["code"] == "STORE_UNAVAILABLE"
            assert tree(root) == before
            assert (await client.call("read", workspace_id="demo", path="a.txt"))["content"] == "a\n"
            ballast.unlink()
            done = await client.call("apply_patch", **patch, operation_key="large")
    assert (done["status"], done["replayed"]) == ("applied", False)
    assert "Traceback" not in read_log(tmp_path)


async def test_a_full_disk_under_the_files_undoes_everything(tmp_path: Path, small_disk: Path) -> None:
    (small_disk / "a.txt").write_text("a\n")
    before = tree(small_disk)
    patch = adding("one.txt", "deep/two.txt", "deep/three.txt", text="y" * 1_900_000)
    with anyio.fail_after(SECONDS_MAX):
        async with raw_client(product(tmp_path, f"demo={small_disk}:workspace-write"), tmp_path) as client:
            failed = await client.call("apply_patch", **patch, operation_key="too much")
            assert failed["status"] == "failed_rolled_back"
            assert failed["error"]["code"] == "FILE_OPERATION_FAILED"
            assert "No space left" in failed["error"]["message"]
            assert tree(small_disk) == before
            assert not (small_disk / "deep").exists()
            again = await client.call("apply_patch", **patch, operation_key="too much")
            assert again == {**failed, "replayed": True}
            assert (await client.call("apply_patch", **adding("small.txt")))["status"] == "applied"


async def test_a_read_only_file_system_is_told_and_nothing_is_left(tmp_path: Path, small_disk: Path) -> None:
    (small_disk / "a.txt").write_text("a\n")
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    with anyio.fail_after(SECONDS_MAX):
        async with raw_client(product(tmp_path, f"demo={small_disk}:workspace-write"), tmp_path) as client:
            told = await client.call("apply_patch", **adding("new.txt"))
            assert (await client.call("read", workspace_id="demo", path="a.txt"))["content"] == "a\n"
    assert "Read-only file system" in json.dumps(told)
    assert told.get("code", told.get("status")) in {"FILE_OPERATION_FAILED", "failed_rolled_back"}
    assert set(tree(small_disk)) == {"a.txt"}


def _gone(root: Path, _other: Path) -> None:
    shutil.rmtree(root)


def _a_file(root: Path, _other: Path) -> None:
    shutil.rmtree(root)
    root.write_text("a file now\n")


@pytest.mark.parametrize("change", [_gone, _a_file], ids=lambda change: change.__name__)
async def test_a_root_that_is_no_directory_any_more_fails_every_call_and_not_the_server(
    client: RawClient, root: Path, tmp_path: Path, change: Callable[[Path, Path], None]
) -> None:
    change(root, tmp_path)
    with anyio.fail_after(SECONDS_MAX):
        for tool, arguments in (
            ("read", {"path": "a.txt"}), ("find", {}), ("search", {"pattern": "a"}), ("apply_patch", adding("new.txt")),
        ):
            told = await client.call(tool, **{"workspace_id": "demo", **arguments})
            assert told["code"] == "FILE_OPERATION_FAILED", told
        shutil.rmtree(root) if root.is_dir() else root.unlink(missing_ok=True)
        root.mkdir()
        assert (await client.call("apply_patch", **adding("new.txt")))["status"] == "applied"


async def test_a_crowd_is_refused_beyond_the_queue_and_may_come_again(client: RawClient, root: Path) -> None:
    crowd = 2 * WAITERS_MAX
    with anyio.fail_after(SECONDS_MAX):
        for number in range(crowd):
            await client.start_call(number, "apply_patch", **adding(f"{number}.txt"), operation_key=f"key {number}")
        answers = {}
        for _ in range(crowd):
            answer = await client.receive()
            answers[answer["id"]] = answer["result"]["structuredContent"]
        refused = [number for number, told in answers.items() if told.get("code") == "RESOURCE_QUEUE_FULL"]
        assert refused
        assert Counter(told.get("status") for told in answers.values())["applied"] == crowd - len(refused)
        for number in refused:
            assert not (root / f"{number}.txt").exists()
            done = await client.call("apply_patch", **adding(f"{number}.txt"), operation_key=f"key {number}")
            assert (done["status"], done["replayed"]) == ("applied", False)


async def test_a_patch_cancelled_at_any_moment_happens_wholly_or_not_at_all(client: RawClient, root: Path) -> None:
    chance = random.Random(20_261_130)
    rounds, files = 40, 30
    with anyio.fail_after(SECONDS_MAX):
        for number in range(rounds):
            names = [f"{number}/{file}.txt" for file in range(files)]
            await client.start_call(f"c{number}", "apply_patch", **adding(*names), operation_key=f"key {number}")
            await anyio.sleep(chance.random() * 0.06)
            await client.send({
                "jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": f"c{number}"},
            })
        outcomes: Counter[str] = Counter()
        for number in range(rounds):
            told = await _ask_among_others(client, number)
            outcome = told.get("status") or told["code"]
            outcomes[outcome] += 1
            directory = root / str(number)
            written = len(list(directory.iterdir())) if directory.exists() else 0
            assert written == (files if outcome == "applied" else 0), (number, told)
    assert set(outcomes) <= {"applied", "OPERATION_NOT_FOUND"}
    assert outcomes["applied"]


async def _ask_among_others(client: RawClient, number: int) -> dict[str, Any]:
    """Return the status of an operation once it is decided; late answers to cancelled calls are passed over."""
    while True:
        await client.start_call(f"s{number}", "operation_status", operation_key=f"key {number}")
        while (answer := await client.receive())["id"] != f"s{number}":
            pass
        told: dict[str, Any] = answer["result"]["structuredContent"]
        if told.get("status") != "unknown":
            return told


async def test_four_servers_with_the_same_keys_apply_each_once(
    tmp_path: Path, root: Path, command: list[str]
) -> None:
    keys = 12
    answers: dict[int, list[dict[str, Any]]] = {number: [] for number in range(keys)}
    (root / "shared.txt").write_text("top\n")

    async def send_all(client: RawClient) -> None:
        for number in range(keys):
            patch = f"*** Begin Patch\n*** Update File: shared.txt\n@@\n top\n+{number}\n*** End Patch\n"
            answers[number].append(await client.call(
                "apply_patch", workspace_id="demo", patch=patch, operation_key=f"key {number}"
            ))

    with anyio.fail_after(SECONDS_MAX):
        async with (
            raw_client(command, tmp_path) as first, raw_client(command, tmp_path) as second,
            raw_client(command, tmp_path) as third, raw_client(command, tmp_path) as fourth,
            anyio.create_task_group() as tasks,
        ):
            for client in (first, second, third, fourth):
                tasks.start_soon(send_all, client)
    for told in answers.values():
        assert sorted(each["replayed"] for each in told) == [False, True, True, True]
        assert len({each["operation_id"] for each in told}) == 1
        assert {each["status"] for each in told} == {"applied"}
    lines = (root / "shared.txt").read_text().splitlines()
    assert sorted(lines) == sorted(["top", *map(str, range(keys))])


async def test_a_directory_swapped_for_a_link_while_patches_run_leads_nowhere(
    client: RawClient, root: Path, tmp_path: Path
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (root / "real").mkdir()

    async def swap_on() -> None:
        while True:
            (root / "real").mkdir(exist_ok=True)
            try:
                (root / "real").rename(root / "aside")
                (root / "real").symlink_to(outside)
                await anyio.sleep(0.001)
                (root / "real").unlink()
                (root / "aside").rename(root / "real")
            except OSError:  # in a moment without it a patch has made the directory anew, or taken its own away
                shutil.rmtree(root / "aside", ignore_errors=True)
            await anyio.sleep(0.001)

    with anyio.fail_after(SECONDS_MAX):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(swap_on)
            for number in range(60):
                told = await client.call("apply_patch", **adding(f"real/{number}.txt"))
                assert told.get("status", told.get("code")) in {"applied", "failed_rolled_back", "SYMLINK_REJECTED"}
                await client.call("read", workspace_id="demo", path=f"real/{number}.txt")
            tasks.cancel_scope.cancel()
    assert list(outside.iterdir()) == []


def _limited(soft: int, hard: int, command: list[str]) -> list[str]:
    return [sys.executable, "-m", "support.limited", str(soft), str(hard), *command]


async def test_a_patch_of_many_directories_needs_no_more_descriptors_than_the_user_may_have(
    tmp_path: Path, root: Path, command: list[str]
) -> None:
    names = [f"{number}/deep/file.txt" for number in range(300)]
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with anyio.fail_after(SECONDS_MAX):
        async with raw_client(_limited(100, hard, command), tmp_path) as client:
            assert (await client.call("apply_patch", **adding(*names)))["status"] == "applied"
    assert len(tree(root)) == 301


async def test_too_few_descriptors_fail_the_patch_and_leave_nothing(
    tmp_path: Path, root: Path, command: list[str]
) -> None:
    names = [f"{number}/deep/file.txt" for number in range(300)]
    before = tree(root)
    with anyio.fail_after(SECONDS_MAX):
        async with raw_client(_limited(100, 100, command), tmp_path) as client:
            told = await client.call("apply_patch", **adding(*names), operation_key="wide")
            assert tree(root) == before
            assert (await client.call("apply_patch", **adding(*names), operation_key="wide"))["replayed"]
            assert (await client.call("apply_patch", **adding("narrow.txt")))["status"] == "applied"
    assert told["status"] == "failed_rolled_back"
    assert "Too many open files" in told["error"]["message"]
    assert {each.name for each in root.iterdir()} == {"a.txt", "narrow.txt"}
