"""The soak: the long tests again and again with new seeds, until the time is over.

`./dev soak [MINUTES [SEED]]`, 30 minutes unless said otherwise. It prints what was run in all, the seeds, and for each
failure the line that runs it again; the whole output of a failure is kept in a file that is named. Exit code 1 if
anything failed. Requests and examples come from the seed; moments of death in real servers don't. What is as long and
would be the same each time has a command of its own on the page about tests.
"""

import os
import random
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parents[1]
MINUTES = 30.0

_TOTAL = re.compile(r"^ *(\d+)  (?!together)(\S.*)$", re.MULTILINE)
_OUTCOME = re.compile(r"^=*\s*(\d+ (?:passed|failed|error).*? in [\d.]+s.*?)=*$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Part:
    """One kind of test; `SEED` in its words is replaced."""

    name: str
    arguments: str
    environment: str = ""

    def line(self, seed: int) -> str:
        """Return the line that runs it with `seed`."""
        return f"{self.environment} ./dev test {self.arguments}".strip().replace("SEED", str(seed))


PARTS = (
    Part("servers under fire", "tests/crash/test_server_under_fire.py", "FIRE_SEED=SEED FIRE_KILLS=200 FIRE_ENDS=40"),
    Part("state machines", "tests/model --hypothesis-seed=SEED", "HYPOTHESIS_PROFILE=dev CODESPACE_EFFORT=10"),
    Part("power cuts", "tests/crash/test_power_cut_of_log_and_tree.py -m 'soak or not soak'"),
    Part("spawners under fire", "tests/crash/test_spawner_under_fire.py -m soak", "FIRE_SEED=SEED"),
    Part("commands without end", "tests/contract/test_runner_zoo.py tests/contract/test_commands.py -m soak"),
    Part(
        "patches at every pair of points",
        "tests/crash/test_patch_writer_crash.py tests/crash/test_patch_writer_races.py -m soak",
    ),
    Part("histories looked back at", "tests/replay/test_any_history.py -m 'soak or not soak' --hypothesis-seed=SEED",
         "HYPOTHESIS_PROFILE=dev CODESPACE_EFFORT=10"),
    Part("PostgreSQL under fire", "tests/crash/test_postgres_deaths.py -m soak", "FIRE_SEED=SEED STORM_KILLS=20"),
)


@dataclass
class Soak:
    """What has been run, and what came of it."""

    seeds: random.Random
    until: float
    kept: Path
    totals: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)

    def run(self) -> None:
        """Run the parts in turn until the time is over; the last one is seen to its end."""
        rounds = 0
        while time.monotonic() < self.until:
            for part in PARTS:
                if time.monotonic() < self.until:
                    self._run(part, self.seeds.getrandbits(32))
            rounds += 1
        self.totals["rounds, the last perhaps not whole"] = rounds

    def _run(self, part: Part, seed: int) -> None:
        line = part.line(seed)
        ended = subprocess.run(["sh", "-c", line], cwd=ROOT, capture_output=True, text=True, check=False)
        for number, name in _TOTAL.findall(ended.stdout):
            self.totals[name] += int(number)
        self.totals[f"runs of: {part.name}"] += 1
        outcome = _OUTCOME.search(ended.stdout)
        print(f"{part.name}, seed {seed}: {outcome[1] if outcome else f'exit code {ended.returncode}'}", flush=True)
        if ended.returncode:
            output = self.kept / f"{len(self.failures) + 1}.txt"
            output.write_text(f"{line}\n{ended.stdout}\n{ended.stderr}", encoding="utf-8")
            self.failures.append(f"{line}    # all that it said: {output}")


def main() -> int:
    """Soak, then tell."""
    minutes = float(sys.argv[1]) if len(sys.argv) > 1 else MINUTES
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else random.SystemRandom().getrandbits(32)
    print(f"soak of {minutes:g} minutes, seed {seed}: ./dev soak {minutes:g} {seed}", flush=True)
    kept = Path(tempfile.mkdtemp(prefix="codespace-soak-"))
    soak = Soak(random.Random(seed), time.monotonic() + minutes * 60, kept)
    soak.run()
    for name, number in sorted(soak.totals.items()):
        print(f"{number:9d}  {name}")
    print(f"{len(soak.failures):9d}  failures; to run them again:" if soak.failures else "        0  failures")
    for line in soak.failures:
        print(line)
    if not soak.failures:
        os.rmdir(kept)
    return 1 if soak.failures else 0


if __name__ == "__main__":
    sys.exit(main())
