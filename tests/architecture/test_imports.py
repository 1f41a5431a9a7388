"""Arrows point down only: what each floor may import, and that every module is imported by somebody."""

import subprocess
import sys
from pathlib import Path

from source_tree import REPOSITORY, product_files, python_files

BANNED_IN_THE_RULES = {
    "adapters": "ask through a port", "replay": "an audit reads the rules, not the other way round",
    "asyncio": "use anyio in a story", "eventsourcing": "only adapters.log knows it", "logging": "raise, or record it",
    "mcp": "the transport's business", "os": "a port", "pathlib": "paths are text here", "random": "the ids port",
    "socket": "a port", "sqlite3": "the log port", "subprocess": "a port", "threading": "anyio.to_thread in a story",
    "time": "the clock port",
}
"""Module -> what to use instead, in `codespace_es`."""

ENTRY_POINTS = {
    "adapters.cli.main": "the command",
    "adapters.log.recorder": "the `eventsourcing` library reads our log by it",
    "adapters.testing": "users model-test their policies by it (docs/model-testing.md)",
    "adapters.spawner.main": "run as a program of its own",
    "adapters.tool_host.child.main": "run as a program of its own",
    "adapters.structural.worker": "run as a program of its own",
    "replay.workspace_check": "crash tests compare files with the log by it",
}
"""Modules that may be imported by nobody in the product, and who comes in there."""


def test_the_rules_stand_on_no_system_module():
    advice = [
        f"{file.name} imports {name}: {BANNED_IN_THE_RULES[top]}"
        for file in python_files("src/codespace_es/")
        for name in file.imports() if (top := name.partition(".")[0]) in BANNED_IN_THE_RULES
    ]
    assert not advice, "; ".join(advice)


def test_a_story_knows_few_others():
    stories = "codespace_es.command_handlers."
    known = {
        file.name: sorted({name for name in file.imports() if name.startswith(stories) and name.count(".") == 2})
        for file in python_files("src/codespace_es/command_handlers/")
    }
    assert known
    knowing = [f"{name} imports {modules}" for name, modules in known.items() if len(modules) > 8]
    assert not knowing, "a story calls few others: " + "; ".join(knowing)


def test_no_module_is_dead():
    files = product_files()
    imported = {name for file in files for name in (*file.imports(), *file.modules_named())}
    dead = [
        file.name for file in files
        if file.path.name != "__init__.py" and file.module not in imported and file.module not in ENTRY_POINTS
        and file.path.name != "__main__.py"
    ]
    assert not dead, f"nobody imports {dead}: delete it, or name it in ENTRY_POINTS with who comes in there"


def test_every_entry_point_is_there():
    modules = {file.module for file in product_files()}
    assert set(ENTRY_POINTS) <= modules, "an entry point has gone: take it off the list"


def test_the_import_contracts_hold():
    program = Path(sys.executable).with_name("lint-imports")
    ran = subprocess.run(
        [program, "--no-cache"], cwd=REPOSITORY, capture_output=True, text=True, timeout=120, check=False
    )
    assert ran.returncode == 0, ran.stdout[-4000:] + ran.stderr[-1000:]
