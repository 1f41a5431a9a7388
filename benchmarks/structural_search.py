"""Structural search against `ast-grep-cli` on the same tree, and what the event loop feels of it meanwhile.

Run: `uv run --group bench python benchmarks/structural_search.py [--quick]`. 1,000 files of 200 lines, half Python and
half TypeScript. Ours goes through the door of a whole server in this process; the peer is a process of its own each
time, threads for every core, with its answer as JSON. Both take turns; ratios are of medians, and both must find the
same. The lag is how late a task that sleeps for a millisecond is woken, at worst in one call; beside it stands the lag
of the same loop while the peer works and ours does nothing, which is what the machine itself costs. Prints a line for
each target, which is judged by the median over the turns, and ends with 1 if one is missed.
"""

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from statistics import median

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / "src"), str(ROOT), str(ROOT / "tests")]

import anyio  # noqa: E402

from codespace_es.command_handlers.matching import MatchCode  # noqa: E402
from codespace_es.command_handlers.rewriting import EditCode  # noqa: E402
from support.server import Server  # noqa: E402

QUICK = "--quick" in sys.argv
FILES = 200 if QUICK else 1_000
LINES = 200
TURNS = 3 if QUICK else 5
LAG_MS_MAX = 50
PEER = Path(sys.executable).with_name("ast-grep")

PYTHON = [
    "def function_{n}(first, second={n}):",
    "    if first.value > second and function_{m}(first):",
    "        log(first, [each.name for each in second], key={n})",
    "    return compute(first, {{'name': 'é', 'number': {n}}})",
]
TYPESCRIPT = [
    "export function function{n}(first: Value, second: number = {n}): Result {{",
    "  if (first.value > second && function{m}(first)) {{ log(first, `text ${{second}}`, {{ key: {n} }}); }}",
    "  return compute(first, [1, 2, 3].map((each) => each + {n}));",
    "}}",
]

failed: list[str] = []


def make_tree(root: Path) -> None:
    for number in range(FILES):
        lines, ending = (PYTHON, "py") if number % 2 else (TYPESCRIPT, "ts")
        text = "\n".join(line.format(n=n, m=n + 1) for n in range(LINES // 4) for line in lines)
        if number % 10 == 0:
            text += "\nlog(same, same)\n"
        if number % 100 == 0:
            text += "\nrarely(used, here)\n"
        path = root / f"folder{number % 20}" / f"file{number}.{ending}"
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")


async def lag_during(work: Callable[[], Awaitable[object]]) -> tuple[float, float]:
    """Return how long `work` took, and the longest that a task was woken late meanwhile, in seconds."""
    worst = 0.0
    async with anyio.create_task_group() as tasks:

        async def tick() -> None:
            nonlocal worst
            while True:
                start = time.perf_counter()
                await anyio.sleep(0.001)
                worst = max(worst, time.perf_counter() - start - 0.001)

        tasks.start_soon(tick)
        await anyio.sleep(0.005)
        start = time.perf_counter()
        await work()
        seconds = time.perf_counter() - start
        tasks.cancel_scope.cancel()
    return seconds, worst


def ask_peer(root: Path, pattern: str, rewrite: str | None = None) -> tuple[float, int]:
    """Return how long the peer took over both languages, and how many matches it found."""
    start = time.perf_counter()
    count = 0
    for language in ("python", "typescript"):
        command = [str(PEER), "run", "--pattern", pattern, "--lang", language, "--json=stream"]
        command += ["--rewrite", rewrite] if rewrite else []
        told = subprocess.run([*command, str(root)], capture_output=True, text=True, check=False)
        count += sum(1 for line in told.stdout.splitlines() if json.loads(line))
    return time.perf_counter() - start, count


async def compare(server: Server, root: Path, name: str, pattern: str, rewrite: str | None = None) -> None:
    found = 0

    async def ours() -> None:
        nonlocal found
        if rewrite is None:
            page = await server.handle(MatchCode(workspace_id="demo", pat=pattern, limit=1_000))
            found = len(page.matches)
            assert not page.truncated
        else:
            command = EditCode.model_validate({"workspace_id": "demo", "ops": [{"pat": pattern, "out": rewrite}]})
            found = (await server.handle(command)).total_replacements

    async def peer() -> None:
        nonlocal told
        told = await anyio.to_thread.run_sync(ask_peer, root, pattern, rewrite)

    told = (0.0, 0)
    mine, peers, lags, idle_lags = [], [], [], []
    for _ in range(TURNS):
        seconds, lag = await lag_during(ours)
        mine.append(seconds)
        lags.append(lag * 1e3)
        _, lag = await lag_during(peer)
        idle_lags.append(lag * 1e3)
        peers.append(told[0])
        assert told[1] == found, (told, found)
    is_met = median(lags) < LAG_MS_MAX
    print(
        f"{'ok  ' if is_met else 'MISS'} {name:32} {found:5} found, {median(mine) * 1e3:6.0f} ms, "
        f"{median(mine) / median(peers):.2f} of the peer's {median(peers) * 1e3:.0f}; lag {median(lags):.1f} ms "
        f"(worst {max(lags):.1f}), idle {median(idle_lags):.1f} (worst {max(idle_lags):.1f})   "
        f"target lag < {LAG_MS_MAX} ms", flush=True,
    )
    if not is_met:
        failed.append(name)


async def main() -> None:
    with tempfile.TemporaryDirectory(prefix="structural-") as scratch:
        root = Path(scratch) / "tree"
        root.mkdir()
        make_tree(root)
        async with Server(Path(scratch), {"demo": root}) as server:
            start = time.perf_counter()
            await server.handle(MatchCode(workspace_id="demo", pat="none($A)"))
            print(f"     first call, workers started                  {(time.perf_counter() - start) * 1e3:.0f} ms")
            await compare(server, root, "every file parsed, few matches", "log($A, $A)")
            await compare(server, root, "a word that few files have", "rarely($$$ARGS)")
            await compare(server, root, "a preview of few changes", "log($A, $A)", "log($A)")
            await compare(server, root, "a preview of every file", "log($$$ARGS)", "record($$$ARGS)")
    if failed:
        sys.exit(1)


if __name__ == "__main__":
    anyio.run(main)
