"""Loading custom tools: what is wrong with a file is told by its name, and the others are there."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import anyio
import pytest

from adapters.tool_host.custom_tools import Surroundings, open_custom_tools
from adapters.tool_host.hosts import Limits
from adapters.tool_host.sources import find_sources
from codespace_es.ports.custom_tools import ToolCatalogue
from codespace_es.vocabulary.errors import CodespaceError
from support.custom_tools import BAD, GOOD, NoServices, having, subject, write_tools

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


def surroundings(scratch: Path, *configured: Path, load_seconds: float = 60) -> Surroundings:
    return Surroundings(
        find_sources=lambda: find_sources(scratch, configured),
        roots=(str(scratch / "ws"),),
        reserved=frozenset({"read"}),
        limits_of_time=Limits(load=load_seconds, grace=0.5),
    )


async def load(scratch: Path, *configured: Path, load_seconds: float = 60) -> ToolCatalogue:
    async with open_custom_tools(surroundings(scratch, *configured, load_seconds=load_seconds)) as tools:
        await tools.load()
        return await tools.catalogue()


def told(catalogue: ToolCatalogue) -> dict[str, str]:
    return {fault.source: fault.message for fault in catalogue.faults}


@pytest.fixture(scope="module")
async def all_bad(tmp_path_factory: pytest.TempPathFactory) -> ToolCatalogue:
    scratch = tmp_path_factory.mktemp("all_bad")
    write_tools(scratch / "tools", **{name: text for name, (text, _) in BAD.items()}, zz_good=GOOD)
    return await load(scratch)


@pytest.mark.parametrize("name", BAD)
async def test_a_file_that_gives_no_tool_is_told_of(all_bad: ToolCatalogue, name: str) -> None:
    assert told(all_bad)[f"tools/{name}.py"].startswith(BAD[name][1])


async def test_the_good_file_among_bad_ones_is_there(all_bad: ToolCatalogue) -> None:
    assert [tool.name for tool in all_bad.tools] == ["greet"]
    assert set(told(all_bad)) == {f"tools/{name}.py" for name in BAD}


async def test_the_first_of_two_tools_with_one_name_stands(tmp_path: Path) -> None:
    write_tools(tmp_path / "tools", a=GOOD, b=having(description="'other'"))
    catalogue = await load(tmp_path)
    assert [(tool.name, tool.description) for tool in catalogue.tools] == [("greet", "Say hello.")]
    assert told(catalogue) == {"tools/b.py": "its name 'greet' is taken by another tool; the first one stands."}


async def test_one_tool_of_a_list_can_be_bad(tmp_path: Path) -> None:
    both = "async def create_tool(api):\n    return [_one(api), _one(api) | {'name': ''}]\n"
    text = f"{GOOD}\n_one = create_tool\n\n{both}"
    write_tools(tmp_path / "tools", a=text)
    catalogue = await load(tmp_path)
    assert [tool.name for tool in catalogue.tools] == ["greet"]
    assert told(catalogue) == {"tools/a.py": "tool 2 of 2: name has to be a text that isn't empty."}


async def test_files_of_the_configuration_and_folders(tmp_path: Path) -> None:
    write_tools(tmp_path / "folder", one=GOOD, _private="raise SystemExit")
    write_tools(tmp_path, two=having(name="'second'"))
    (tmp_path / "void").mkdir()
    missing = tmp_path / "missing.py"
    catalogue = await load(tmp_path, tmp_path / "two.py", tmp_path / "folder", missing, tmp_path / "void")
    assert [(tool.name, tool.source) for tool in catalogue.tools] == [
        ("greet", str(tmp_path / "folder" / "one.py")), ("second", str(tmp_path / "two.py")),
    ]
    assert told(catalogue) == {
        str(missing): "custom_tools names it, and it isn't there.",
        str(tmp_path / "void"): "custom_tools names it, and no tool file (*.py) is in it.",
    }


async def test_a_file_imports_its_neighbours_and_shadows_nothing(tmp_path: Path) -> None:
    write_tools(tmp_path / "tools", _greeting="WORD = 'hi'", json="raise SystemExit", a="import json\n" + having(
        label="__import__('_greeting').WORD"
    ))
    catalogue = await load(tmp_path)
    assert [(tool.name, tool.label) for tool in catalogue.tools] == [("greet", "hi")]
    assert not (tmp_path / "tools" / "__pycache__").exists()


async def test_nothing_is_loaded_from_a_workspace(tmp_path: Path) -> None:
    write_tools(tmp_path / "ws", evil=GOOD)
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools" / "link.py").symlink_to(tmp_path / "ws" / "evil.py")
    catalogue = await load(tmp_path, tmp_path / "ws" / "evil.py", tmp_path / "ws" / ".." / "ws" / "evil.py")
    assert catalogue.tools == ()
    reason = f"it lies in the workspace {tmp_path / 'ws'}, where an agent could have written it."
    assert set(told(catalogue).values()) == {reason}
    assert len(catalogue.faults) == 3


async def test_nothing_is_loaded_that_others_may_write(tmp_path: Path) -> None:
    write_tools(tmp_path / "tools", open=GOOD)
    (tmp_path / "tools" / "open.py").chmod(0o666)
    os.mkfifo(tmp_path / "tools" / "pipe.py")
    (tmp_path / "tools" / "folder.py").mkdir()
    (tmp_path / "tools" / "gone.py").symlink_to(tmp_path / "nowhere.py")
    catalogue = await load(tmp_path)
    assert catalogue.tools == ()
    faults = told(catalogue)
    assert faults["tools/open.py"].startswith("others than you and the system may write it")
    assert faults["tools/pipe.py"] == "it isn't a regular file."
    assert faults["tools/folder.py"] == "it isn't a regular file."
    assert faults["tools/gone.py"].startswith("FileNotFoundError")


@contextmanager
def installed(scratch: Path, monkeypatch: pytest.MonkeyPatch, entry_points: str, **modules: str) -> Iterator[None]:
    """Have a package installed, for this process and those that it starts."""
    site = scratch / "site"
    (site / "acme-1.dist-info").mkdir(parents=True)
    (site / "acme-1.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: acme\nVersion: 1\n")
    (site / "acme-1.dist-info" / "entry_points.txt").write_text(f"[codespace_es.tools]\n{entry_points}\n")
    for name, text in modules.items():
        (site / f"{name}.py").write_text(text)
    monkeypatch.syspath_prepend(str(site))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(site), os.environ.get("PYTHONPATH", "")]))
    yield


async def test_entry_points_of_installed_packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    points = "whole = acme_one\npart = acme_two:make\nbad = acme_none:x\nno = acme_one:nothing"
    two = having(name="'second'") + "\nmake = create_tool\ndel create_tool\n"
    with installed(tmp_path, monkeypatch, points, acme_one=GOOD, acme_two=two):
        catalogue = await load(tmp_path)
    assert [(tool.name, tool.source) for tool in catalogue.tools] == [
        ("greet", "entry point whole = acme_one"), ("second", "entry point part = acme_two:make"),
    ]
    assert told(catalogue) == {
        "entry point bad = acme_none:x": "there is no module 'acme_none'.",
        "entry point no = acme_one:nothing": "AttributeError: module 'acme_one' has no attribute 'nothing'.",
    }


async def test_the_servers_own_settings_and_tokens_are_not_shown_to_tools(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CODESPACE_HTTP_TOKEN", "s3cret")
    monkeypatch.setenv("ACME_KEY", "for tools")
    label = "' '.join(k for k in __import__('os').environ if k.startswith(('CODESPACE', 'ACME')))"
    write_tools(tmp_path / "tools", a=having(label=label))
    assert [tool.label for tool in (await load(tmp_path)).tools] == ["ACME_KEY"]


async def test_bad_metadata_of_a_package_stops_nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_tools(tmp_path / "tools", a=GOOD)
    with installed(tmp_path, monkeypatch, "nothing but words"):
        catalogue = await load(tmp_path)
    assert [tool.name for tool in catalogue.tools] == ["greet"]
    assert list(told(catalogue)) == ["installed packages"]


async def test_whoever_waits_may_go_while_it_loads(tmp_path: Path) -> None:
    write_tools(tmp_path / "tools", a=f"import time\ntime.sleep(0.5)\n{GOOD}")
    async with open_custom_tools(surroundings(tmp_path)) as tools:
        with anyio.move_on_after(0.1) as scope:
            await tools.load()
        assert scope.cancelled_caught or (await tools.catalogue()).tools
        outcome = await tools.execute(subject("greet"), {"name": "you"}, NoServices())
    assert outcome.content == "hello you"


_SAY = """
import os, stat, time
def say(frame):
    for fd in range(3, 100):
        try:
            if stat.S_ISSOCK(os.fstat(fd).st_mode):
                os.write(fd, frame)
        except OSError:
            pass
    time.sleep(100)
"""

HOSTILE = {
    "leaves": "import os\nos._exit(7)",
    "crashes": "import ctypes\nctypes.string_at(0)",
    "leaves_a_child": "import os, time\nos.fork() and os._exit(7)\ntime.sleep(1000)",
    "closes_everything": "import os\nos.closerange(3, 100)",
    "talks_nonsense": f"{_SAY}say(b'x' * 100)",
    "goes_deep": f"{_SAY}text = b'[' * 100_000\nsay(len(text).to_bytes(4, 'big') + text)",
    "says_what_it_should_not": f"{_SAY}text = b'{{\"kind\": \"done\", \"call\": \"x\", \"result\": null}}'\n"
                               "say(len(text).to_bytes(4, 'big') + text)",
}


KILLING = {
    "kills": "import os, signal\nos.kill(os.getpid(), signal.SIGKILL)",
    "kills_its_session": "import os, signal\nos.killpg(0, signal.SIGKILL)",
}
"""Only a few such ends are borne: somebody else may have been the killer."""


@pytest.mark.parametrize("files", [HOSTILE, *({name: text} for name, text in KILLING.items())],
                         ids=["hostile", *KILLING])
async def test_files_that_end_their_process_are_named_and_the_others_are_there(
    tmp_path: Path, files: dict[str, str]
) -> None:
    write_tools(tmp_path / "tools", a=GOOD, **files, z=having(name="'second'"))
    catalogue = await load(tmp_path)
    assert [tool.name for tool in catalogue.tools] == ["greet", "second"]
    assert set(told(catalogue)) == {f"tools/{name}.py" for name in files}
    assert all(reason.endswith("it is skipped until the server starts again.") for reason in told(catalogue).values())


@pytest.mark.parametrize("text", [
    "import ctypes\nwhile True:\n    ctypes.PyDLL(None).pause()  # lets no other thread run",
    "import signal, time\nsignal.signal(signal.SIGABRT, signal.SIG_IGN)\ntime.sleep(1000)",
    "import anyio\nasync def create_tool(api):\n    await anyio.sleep(1000)",
    "input_is_at_its_end = open(0).read()\nimport time\ntime.sleep(1000)",
])
async def test_a_file_that_takes_too_long_is_named_and_the_others_are_there(tmp_path: Path, text: str) -> None:
    write_tools(tmp_path / "tools", a=GOOD, slow=text, z=having(name="'second'"))
    catalogue = await load(tmp_path, load_seconds=4)
    assert [tool.name for tool in catalogue.tools] == ["greet", "second"]
    reason = "it took longer than 4 s to load; it is skipped until the server starts again."
    assert told(catalogue) == {"tools/slow.py": reason}


async def test_who_ends_the_process_later_is_found_out_and_nobody_else_is_skipped(tmp_path: Path) -> None:
    late = "import os, threading, time\nthreading.Thread(target=lambda: (time.sleep(0.5), os._exit(1))).start()\n"
    write_tools(tmp_path / "tools", a=GOOD, late=late + having(name="'late'"), z=having(name="'second'"))
    async with open_custom_tools(surroundings(tmp_path)) as tools:
        await tools.load()
        with anyio.fail_after(60):
            while "late" in [tool.name for tool in (await tools.catalogue()).tools]:
                for name in ("greet", "second", "late"):
                    with suppress(CodespaceError):  # whose process ended just then
                        await tools.execute(subject(name), {"name": "you"}, NoServices())
                await anyio.sleep(0.05)
        catalogue = await tools.catalogue()
    assert [tool.name for tool in catalogue.tools] == ["greet", "second"]
    assert set(told(catalogue)) == {"tools/late.py"}
