"""Commands against plain Python: start and end, output through a window, memory, and how fast a dead server's trees go.

Run: `.venv/bin/python benchmarks/commands.py [--quick]`. What is compared takes turns in one run, so that a noisy
machine is noisy to all; ratios are of medians. Prints a line for each target and ends with 1 if one is missed.
"""

import os
import pty
import signal
import subprocess
import sys
import tempfile
import time
import tty
from collections.abc import Awaitable, Callable
from pathlib import Path
from statistics import median, quantiles

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / "src"), str(ROOT), str(ROOT / "tests")]

import anyio  # noqa: E402

from support.process_runner import Locks, Workshop, children_of, command, own_runner, processes_with  # noqa: E402

QUICK = "--quick" in sys.argv
ECHOES = 40 if QUICK else 200
GIB = 1 << 30
PIPE_BYTES = GIB // 8 if QUICK else GIB
TERMINAL_BYTES = GIB // 64 if QUICK else GIB // 4
TURNS = 3

failed: list[str] = []


def line(name: str, measured: str, target: str, *, is_met: bool) -> None:
    print(f"{'ok  ' if is_met else 'MISS'} {name:52} {measured:>44}   target {target}", flush=True)
    if not is_met:
        failed.append(name)


async def timed(work: Callable[[], Awaitable[object]]) -> float:
    start = time.perf_counter()
    await work()
    return time.perf_counter() - start


async def start_and_end(workshop: Workshop) -> None:
    """Spawn, output and exit of /bin/echo: ours (spawner, gate, go, tree empty, tail) against subprocess.run."""
    lease = workshop.locks.take("echo")

    async def ours(*, tty: bool) -> None:
        child = await workshop.runner.start(command(workshop.root, "/bin/echo", "hi", tty=tty), lease=lease)
        assert (await (await child.go()).wait()).wait_status == 0

    await ours(tty=False)
    await ours(tty=True)
    plain, pipe, terminal = [], [], []
    for _ in range(ECHOES):
        start = time.perf_counter()
        subprocess.run(["/bin/echo", "hi"], capture_output=True, check=True)
        plain.append(time.perf_counter() - start)
        pipe.append(await timed(lambda: ours(tty=False)))
        terminal.append(await timed(lambda: ours(tty=True)))
    for name, times in (("pipe", pipe), ("terminal", terminal)):
        tenth, *_ = quantiles(times, n=10)
        line(f"echo on a {name}, start to end", f"p10 {tenth * 1e3:.2f} p50 {median(times) * 1e3:.2f} ms, "
             f"{median(times) / median(plain):.1f} x run's {median(plain) * 1e3:.2f}", "p50 <= 4 ms",
             is_met=median(times) <= 0.004)


async def parts_of_an_echo(workshop: Workshop) -> None:
    """What one echo costs whom, in processor time, which doesn't depend on who else uses the machine's cores."""
    lease = workshop.locks.take("parts")
    spawner = next(pid for pid, _ in children_of(os.getpid()))
    reaper = next(pid for pid, _ in children_of(spawner))
    processes = {"server": os.getpid(), "spawner": spawner, "reaper": reaper}
    before = {name: spent(pid) for name, pid in processes.items()}
    for _ in range(ECHOES):
        child = await workshop.runner.start(command(workshop.root, "/bin/echo", "hi", tty=False), lease=lease)
        await (await child.go()).wait()
    parts = []
    for name, pid in processes.items():
        ours_ms, children_ms, faults = (late - early for late, early in zip(spent(pid), before[name], strict=True))
        parts.append(f"{name} {ours_ms / ECHOES:.2f} ms and {faults / ECHOES:.0f} page faults")
        if name == "reaper":
            parts.append(f"the child, from fork to exit, {children_ms / ECHOES:.1f} ms")
    print(f"       an echo's processor time: {', '.join(parts)}", flush=True)
    lease.release()


def spent(pid: int) -> tuple[float, float, int]:
    """Return a process' processor time and that of its ended children in ms, and its page faults."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    ours_ns = int(Path(f"/proc/{pid}/schedstat").read_text().split()[0])
    return ours_ns / 1e6, (int(fields[13]) + int(fields[14])) * 1000 / os.sysconf("SC_CLK_TCK"), int(fields[7])


async def throughput(workshop: Workshop, *, has_terminal: bool, size: int) -> None:
    """All that a program can print, through our window against a plain reader; others are answered meanwhile."""
    argv = ["sh", "-c", f"{'stty raw; ' * has_terminal}exec dd if=/dev/zero bs=64K count={size >> 16} status=none"]
    plain, ours, late = [], [], []
    spent_on: dict[str, list[float]] = {"ours": [], "plain": []}

    async def ours_once() -> None:
        process = await workshop.run(*argv, tty=has_terminal)
        end = await process.wait()
        assert end.output_bytes == size, (end.output_bytes, size)

    async def other_calls(scope: anyio.CancelScope) -> None:
        with scope:
            while True:
                start = time.perf_counter()
                await anyio.sleep(0.002)
                late.append(time.perf_counter() - start - 0.002)

    for _ in range(TURNS):
        start, spent_before = time.perf_counter(), time.process_time()
        read_plainly(argv, has_terminal=has_terminal, size=size)
        plain.append(time.perf_counter() - start)
        spent_on["plain"].append(time.process_time() - spent_before)
        async with anyio.create_task_group() as tasks:
            scope = anyio.CancelScope()
            tasks.start_soon(other_calls, scope)
            spent_before = time.process_time()
            ours.append(await timed(ours_once))
            spent_on["ours"].append(time.process_time() - spent_before)
            scope.cancel()
    ratio = median(plain) / median(ours)
    name = "terminal" if has_terminal else "pipe"
    line(f"{size >> 20} MiB through a {name}", f"{size / median(ours) / 1e6:.0f} MB/s, plain "
         f"{size / median(plain) / 1e6:.0f}, ratio {ratio:.2f}", ">= 0.5 x plain", is_met=ratio >= 0.5)
    seconds = {name: median(times) * GIB / size for name, times in spent_on.items()}
    print(f"       processor time a GiB: {seconds['ours']:.2f} s, plain {seconds['plain']:.2f}", flush=True)
    p99 = quantiles(late, n=100)[98]
    line("another call meanwhile, lateness", f"p99 {p99 * 1e3:.1f} max {max(late) * 1e3:.1f} ms", "p99 < 50 ms",
         is_met=p99 < 0.05)


def read_plainly(argv: list[str], *, has_terminal: bool, size: int) -> None:
    """The plainest reader there is: a blocking loop of 64 KiB reads, nothing kept."""
    if has_terminal:
        reader, writer = pty.openpty()
        tty.setraw(writer)
    else:
        reader, writer = os.pipe()
    process = subprocess.Popen(argv, stdin=writer if has_terminal else None, stdout=writer)
    os.close(writer)
    total = 0
    try:
        while content := os.read(reader, 65536):
            total += len(content)
    except OSError:
        pass  # a terminal's end
    os.close(reader)
    process.wait()
    assert total == size, (total, size)


def memory(workshop: Workshop) -> None:  # noqa: ARG001 - its spawner is this process' child
    """What the spawner takes, and what a reaper takes beside it."""
    spawner = next(pid for pid, _ in children_of(os.getpid()))
    resident = kib(spawner, "status", "VmRSS")
    line("spawner, resident", f"{resident / 1024:.1f} MiB", "<= 12 MiB", is_met=resident <= 12 * 1024)
    for reaper, _ in children_of(spawner):
        print(f"       its idle reaper: {kib(reaper, 'status', 'VmRSS') / 1024:.1f} MiB resident, of its own (Pss) "
              f"{kib(reaper, 'smaps_rollup', 'Pss') / 1024:.1f} MiB")


def kib(pid: int, file: str, name: str) -> int:
    for text in Path(f"/proc/{pid}/{file}").read_text().splitlines():
        if text.startswith(f"{name}:"):
            return int(text.split()[1])
    raise LookupError(name)


async def death(path: Path) -> None:
    """A server killed with 30 daemonised descendants: until none of them lives."""
    mark = f"benchmark-of-{os.getpid()}"
    times = []
    for turn in range(TURNS):
        place = path / str(turn)
        place.mkdir()
        script = "for i in $(seq 9); do setsid sleep 600 & done; echo ready; sleep 600"
        server = subprocess.Popen(
            [sys.executable, str(ROOT / "tests/support/process_parent.py"), str(place), mark, script, "live", "3"],
            stdout=subprocess.PIPE, env={**os.environ, "PYTHONPATH": ":".join(sys.path[:3])})
        assert server.stdout is not None
        server.stdout.readline()
        assert len(processes_with(mark)) >= 30
        start = time.perf_counter()
        server.send_signal(signal.SIGKILL)
        while processes_with(mark):
            await anyio.sleep(0.002)
        times.append(time.perf_counter() - start)
        server.wait()
        server.stdout.close()
    line("server killed, 30 descendants gone", f"median {median(times) * 1e3:.0f} max {max(times) * 1e3:.0f} ms",
         "<= 1000 ms", is_met=max(times) <= 1)


async def main() -> None:
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory)
        async with own_runner(path) as runner:
            workshop = Workshop(runner, path, Locks(path / "locks"))
            await start_and_end(workshop)
            await parts_of_an_echo(workshop)
            await throughput(workshop, has_terminal=False, size=PIPE_BYTES)
            await throughput(workshop, has_terminal=True, size=TERMINAL_BYTES)
            memory(workshop)
        await death(path)


if __name__ == "__main__":
    anyio.run(main)
    sys.exit(1 if failed else 0)
