"""Spawner, reapers and children are killed and stopped at random while commands run: none hangs, none runs twice.

What a command has done stands in a file that it alone writes; a repeat by its key tells the same and runs nothing.
"""

import os
import random
import signal
from contextlib import suppress
from pathlib import Path

import anyio
import pytest

from codespace_es.vocabulary.errors import CodespaceError, ErrorCode
from support.commands import SECONDS_MAX, Commands
from support.process_runner import children_of, spawner_of
from support.server import Server

pytestmark = [pytest.mark.anyio, pytest.mark.soak]

SEED = os.environ.get("FIRE_SEED", "1")
WORKSPACES = [f"w{number}" for number in range(4)]
COMMANDS_EACH = 40
ENDINGS = ("true", "exit 3", "sleep 0.02", "sleep 0.1", "setsid sleep 30 & sleep 0.01", "head -c 100000 /dev/zero",
           "kill -STOP $PPID", "kill -KILL $PPID")
SIGNALS = (signal.SIGKILL, signal.SIGKILL, signal.SIGSTOP, signal.SIGTERM, signal.SIGHUP, signal.SIGCONT)


@pytest.mark.parametrize("sandbox", ["off", "auto"])
@pytest.mark.parametrize("turn", range(3))
async def test_no_command_hangs_or_runs_twice(tmp_path: Path, turn: int, sandbox: str) -> None:
    roots = {name: tmp_path / name for name in WORKSPACES}
    for root in roots.values():
        root.mkdir()
    async with Server(tmp_path, roots, sandbox=sandbox) as server:
        commands = Commands(server)
        await commands.run("true", workspace_id=WORKSPACES[0])
        async with anyio.create_task_group() as fire:
            fire.start_soon(shoot, random.Random(f"{SEED}-{turn}"))
            async with anyio.create_task_group() as tasks:
                for name, root in roots.items():
                    tasks.start_soon(work, commands, name, root, random.Random(f"{SEED}-{turn}-{name}"))
            fire.cancel_scope.cancel()
        with anyio.fail_after(SECONDS_MAX):
            for name in WORKSPACES:
                await until_run(commands, name)
            while server.world.live:
                await anyio.sleep(0.005)
        assert not [pid for pid, state in children_of(os.getpid()) if state == "Z"]


async def until_run(commands: Commands, name: str) -> None:
    """Run a command; the first may be refused, if the last shot has hit what should watch it."""
    while True:
        with suppress(CodespaceError):
            report, _ = await commands.run("true", workspace_id=name)
            if report.exit_code == 0:
                return


async def shoot(dice: random.Random) -> None:
    """Hit one at random, the spawner seldom. A command's first process is stopped by nobody: that is its own affair."""
    while True:
        await anyio.sleep(dice.uniform(0, 0.08))
        with suppress(AssertionError):  # there is no spawner in this moment
            spawner = spawner_of(os.getpid())
            reapers = [pid for pid, _ in children_of(spawner)]
            children = [pid for reaper in reapers for pid, _ in children_of(reaper)]
            number = dice.choice(SIGNALS)
            others = [*([] if number == signal.SIGSTOP else children), *([spawner] if dice.random() < 0.2 else [])]
            victims = [*reapers, *others]
            if victims:
                with suppress(ProcessLookupError):
                    os.kill(dice.choice(victims), number)


async def work(commands: Commands, name: str, root: Path, dice: random.Random) -> None:
    for number in range(COMMANDS_EACH):
        key = f"{name}-{number}"
        script = f"echo x >> {key}; {dice.choice(ENDINGS)}"
        fields = {"workspace_id": name, "operation_key": key, "tty": dice.random() < 0.25}
        with anyio.fail_after(SECONDS_MAX):
            first = await outcome(commands, script, dice.uniform(0, 0.02) if dice.random() < 0.15 else None, fields)
            again = await outcome(commands, script, None, fields)
        assert again == first
        times = (root / key).read_text().count("x") if (root / key).exists() else 0
        assert times <= 1
        if first[1] == "exited" and times == 0:  # the gate was open, but the program wasn't executed
            report = await commands.status(str(first[0]))
            assert report.exit_code == 126, (report, script)
        if first[0] == ErrorCode.PROCESS_SPAWN_FAILED:
            assert times == 0


async def outcome(
    commands: Commands, script: str, patience: float | None, fields: dict[str, object]
) -> tuple[object, object]:
    """Return process and termination, or code and nothing; a caller who has `patience` asks, leaves, and asks again."""
    try:
        if patience is not None:
            with anyio.move_on_after(patience):
                await commands.exec("bash", "-c", script, **fields)
        process_id = (await commands.exec("bash", "-c", script, **fields)).process_id
        return process_id, (await commands.ended(process_id)).termination
    except CodespaceError as error:
        return error.code, None
