"""How long `serve` takes from its start to the end of the handshake: a log of 10 events, one of 1,000,000, the floor.

    .venv/bin/python benchmarks/start.py [--events 1000000] [--starts 10] [--keep DIRECTORY]

The long log is written by the log adapter itself: patches under keys, as real servers could have made them. The
servers are started in turns, so that whatever else the machine does meets all alike; the first turn warms up and isn't
counted. The floor is the same SDK with one empty tool on its own transport. Target: long at most 1.2 times short.
Source: decision 42.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

sys.path.append(str(Path(__file__).resolve().parents[1] / "tests/replay"))

import anyio
from large_log import make_log
from stdio_calls import Client

from adapters.log.reader import LogReader
from codespace_es.event_catalogue import CATALOGUE

FLOOR = [sys.executable, str(Path(__file__).with_name("stdio_calls.py")), "--serve-floor", "stock"]


def product(scratch: Path, directory: Path) -> list[str]:
    return [
        str(Path(sys.executable).with_name("codespace-es")), "serve",
        "--workspace", f"demo={scratch / 'ws'}:workspace-write", "--data-dir", str(directory),
    ]


def lengthen(path: Path, events: int) -> None:
    """Append about so many events to the log at `path`."""
    with LogReader(path, CATALOGUE) as reader:
        life = reader.head()[0] + 1
    anyio.run(make_log, path, events, life)


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
    lengthen(directories["short"] / "codespace.db", 4)
    missing = events - count_events(directories["long"])
    if missing > 0:
        begun = time.perf_counter()
        lengthen(directories["long"] / "codespace.db", missing)
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
