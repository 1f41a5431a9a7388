"""How long `serve` takes from its start to the end of the handshake: a log of 10 events, one of 1,000,000, the floor.

    .venv/bin/python benchmarks/start.py [--events 1000000] [--starts 10] [--keep DIRECTORY]

The long log is written by the log adapter itself, as operations that real servers could have made. The three servers
are started in turns, so that whatever else the machine does meets all alike; the first turn warms up and isn't counted.
The floor is the same SDK with one empty tool on its own transport. Target: long at most 1.2 times short.
Source: decision 42.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median

import anyio
from log_load import WORKSPACE, BufferedIds, WallClock
from stdio_calls import Client

from adapters.log.event_log import StoredEventLog
from adapters.log.reader import LogReader
from codespace_es.aggregates.instance import InstanceStarted, InstanceStopped
from codespace_es.aggregates.operation import OperationFinished, OperationMinted
from codespace_es.event_catalogue import CATALOGUE
from codespace_es.open_index import open_change
from codespace_es.ports.log import Append, NewBody, NewEvent
from codespace_es.vocabulary.event import Caller
from codespace_es.vocabulary.file_change import PlannedFile
from codespace_es.vocabulary.identifiers import InstanceId, RequestId, StreamId

FLOOR = [sys.executable, str(Path(__file__).with_name("stdio_calls.py")), "--serve-floor", "stock"]
CALLER = Caller("mcp", RequestId("req-5d1c2b34-0000-4000-8000-000000000002"), "benchmark/1.0")
OPERATIONS_AN_APPEND = 500
IDS = BufferedIds()


def product(scratch: Path, directory: Path) -> list[str]:
    return [
        str(Path(sys.executable).with_name("codespace-es")), "serve",
        "--workspace", f"demo={scratch / 'ws'}:workspace-write", "--data-dir", str(directory),
    ]


def operations(count: int) -> Iterator[tuple[NewEvent, NewEvent, NewBody]]:
    """Yield the two events and the patch text of so many applied operations."""
    request_text = b"*** Begin Patch\n*** Update File: src/package/module.py\n@@\n-old\n+new\n*** End Patch\n"
    for _ in range(count):
        operation = StreamId(f"op-{IDS.uuid()}")
        body = NewBody(operation, "request", request_text)
        digest = body.body.digest
        planned = PlannedFile(path="src/package/module.py", kind="update", before=digest, after=digest,
                              before_bytes=4_000, after_bytes=4_000, mode=0o644, before_mode=0o644)
        minted = OperationMinted(workspace_key=WORKSPACE, workspace_id="demo", source="apply_patch", check_only=False,
                                 fingerprint=digest, request=body.body, plan=(planned,))
        yield NewEvent(operation, 1, minted), NewEvent(operation, 2, OperationFinished(status="applied")), body


async def lengthen(path: Path, events: int) -> None:
    """Append one instance's life of about `events` events to the log at `path`."""
    instance_id = InstanceId(f"inst-{IDS.uuid()}")
    started = InstanceStarted(
        software="codespace-es/benchmark", machine_id="benchmark", host="here", boot_id="boot", pid=1, pid_namespace=1,
        started_ticks=1, transport="stdio", configuration="sha256:" + "0" * 64,
    )
    log = StoredEventLog(path, catalogue=CATALOGUE, open_rule=open_change, instance_id=instance_id,
                         clock=WallClock(), ids=IDS)
    async with log:
        await log.append(Append((NewEvent(StreamId(instance_id), 1, started),)), CALLER)
        left = events // 2
        while left > 0:
            made = list(operations(min(left, OPERATIONS_AN_APPEND)))
            left -= len(made)
            both = tuple(event for minted, finished, _ in made for event in (minted, finished))
            await log.append(Append(both, tuple(body for _, _, body in made)), CALLER)
        ended = NewEvent(StreamId(instance_id), 2, InstanceStopped(reason="eof"))
        await log.append(Append((ended,)), CALLER)


def count_events(directory: Path) -> int:
    with LogReader(directory / "codespace.db", CATALOGUE) as reader:
        return reader.head()[0]


def prepare(scratch: Path, events: int) -> dict[str, Path]:
    """Make both data directories; the long one is kept from an earlier run."""
    (scratch / "ws").mkdir(exist_ok=True)
    directories = {"short": scratch / "short", "long": scratch / "long"}
    shutil.rmtree(directories["short"], ignore_errors=True)
    for directory in directories.values():
        if not directory.exists():
            Client(product(scratch, directory), scratch).end()
    anyio.run(lengthen, directories["short"] / "codespace.db", 4)
    missing = events - count_events(directories["long"])
    if missing > 2:
        begun = time.perf_counter()
        anyio.run(lengthen, directories["long"] / "codespace.db", missing)
        print(f"made {missing} events in {time.perf_counter() - begun:.0f} s")
    return directories


def import_ms(scratch: Path) -> float:
    """Return what the interpreter and the SDK's import cost alone, without a server."""
    begun = time.perf_counter()
    subprocess.run([sys.executable, "-c", "import mcp.server.lowlevel"], check=True, cwd=scratch)
    return (time.perf_counter() - begun) * 1000


def measure(scratch: Path, events: int, starts: int) -> None:
    directories = prepare(scratch, events)
    commands = {"floor": FLOOR, **{name: product(scratch, directory) for name, directory in directories.items()}}
    times: dict[str, list[float]] = {name: [] for name in (*commands, "import of the SDK")}
    for turn in range(starts + 1):
        found = {"import of the SDK": import_ms(scratch)}
        for name, command in commands.items():
            client = Client(command, scratch)
            found[name] = client.start_ms
            client.end()
        if turn:
            for name, milliseconds in found.items():
                times[name].append(milliseconds)
    for name, each in times.items():
        told = f"{count_events(directories[name])} events" if name in directories else ""
        print(f"{name:20} {told:16} median {median(each):7.0f} ms   min {min(each):7.0f} ms")
    middle = {name: median(each) for name, each in times.items()}
    print(f"long / short: {middle['long'] / middle['short']:.2f} by medians, "
          f"{min(times['long']) / min(times['short']):.2f} by minima (target 1.2)")
    print(f"short / floor: {middle['short'] / middle['floor']:.2f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--events", type=int, default=1_000_000)
    parser.add_argument("--starts", type=int, default=10)
    parser.add_argument("--keep", type=Path, help="Keep the logs here for the next run.")
    chosen = parser.parse_args()
    if chosen.keep:
        os.makedirs(chosen.keep, exist_ok=True)
        measure(chosen.keep.resolve(), chosen.events, chosen.starts)
    else:
        with tempfile.TemporaryDirectory() as name:
            measure(Path(name), chosen.events, chosen.starts)
