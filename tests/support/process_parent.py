"""A server in miniature, to be killed: takes its locks, starts commands, says so, and waits.

Arguments: directory, mark, shell script, `gated` or `live`, number of commands. Prints `ready` and the spawner's pid.
"""

import os
import sys
from pathlib import Path

import anyio

from adapters.runner.own_spawner import open_spawner_runner
from support.process_runner import Locks, children_of, command


async def main(directory: Path, mark: str, script: str, state: str, count: int) -> None:
    locks = Locks(directory / "locks")
    async with open_spawner_runner(instance_lock=locks.take("instance"), processes_max=64) as runner:
        for number in range(count):
            lease = locks.take(f"lease-{number}")
            child = await runner.start(
                command(directory, "bash", "-c", script, environment={"MARK": mark}, stdin="pipe"), lease=lease)
            if state == "live":
                process = await child.go()
                await process.read(0, wait_ms=20_000, bytes_max=100)
        print("ready", children_of(os.getpid())[0][0], flush=True)
        await anyio.sleep_forever()


if __name__ == "__main__":
    anyio.run(main, Path(sys.argv[1]), *sys.argv[2:5], int(sys.argv[5]))
