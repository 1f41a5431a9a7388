"""Custom tools through a real client: listed, called, judged like a client, and never able to hurt the server."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client

from support.custom_tools import GOOD, with_body, write_tools
from support.http_client import TOKEN, http_product, serving
from support.stdio_client import ERAS, SECONDS_MAX, ask, connected, product, raw_client, read_log, refused

pytestmark = pytest.mark.anyio

_READ_ONLY = '"annotations": {"readOnlyHint": True},'

FILES = {
    "a_many": """
from pydantic import BaseModel, Field
from codespace_es.tools import Tool, ToolResult

class Parameters(BaseModel):
    count: int = Field(ge=1)
    word: str = "w"

async def create_tool(api):
    async def repeat(call_id, params, context):
        assert isinstance(params, Parameters)
        return ToolResult(params.word * params.count, details={"count": params.count, "work": context.work_id})
    def work_in_a_thread(call_id, params, context):
        import anyio.from_thread
        return anyio.from_thread.run(api.workspace.read, "letters.txt").text
    return [
        Tool(name="repeat", label="Repeat", description="Repeat a word.", parameters=Parameters, execute=repeat,
             annotations={"readOnlyHint": True, "idempotentHint": True, "openWorldHint": False}),
        Tool(name="blocking", label="Blocking", description="Read.", parameters={"type": "object"},
             execute=work_in_a_thread, annotations={"readOnlyHint": True}),
    ]
""",
    "greet": GOOD,
    "broken": "def (",
    "prints": with_body("prints", """
import os, subprocess, sys
print("BY PYTHON")
print("BY HALF", "\\ud800")
os.write(1, b"BY DESCRIPTOR\\n")
subprocess.run(["echo", "BY A CHILD"])
sys.stderr.write("BY STDERR\\n")
api.logger.warning("BY LOGGER %d", 7)
return sys.stdin.read()
""", more=_READ_ONLY),
    "raises": with_body("raises", 'raise ValueError("no such\\nluck")', more=_READ_ONLY),
    "raises_half": with_body("raises_half", """
api.logger.warning("HALF %s", "\\udc80")
raise ValueError("half a character: \\ud800")
""", more=_READ_ONLY),
    "exits": with_body("exits", "raise SystemExit(4)", more=_READ_ONLY),
    "says_no": with_body("says_no", """
from codespace_es.tools import ToolResult
return ToolResult("it is no use", details={"tried": 3}, is_error=True)
""", more=_READ_ONLY),
    "odd_results": with_body("odd_results", """
from codespace_es.tools import ToolResult
kind = params["kind"]
return {
    "none": None, "number": 3, "bytes": ToolResult(b"x"), "nan": ToolResult("x", details=float("nan")),
    "set": ToolResult("x", details={1}), "half": ToolResult("\\ud800 x", details=["\\udcff"]),
    "large": ToolResult("x" * 5_000_000), "list": ToolResult("x", details=[1, None]),
}[kind]
""", more=_READ_ONLY),
    "slow": with_body("slow", "import anyio\nawait anyio.sleep(1000)", more=_READ_ONLY + '"timeout": 0.2'),
    "reads": with_body("reads", """
import dataclasses
found = {
    "read": lambda: api.workspace.read(params["path"]),
    "find": lambda: api.workspace.find(params["glob"]),
    "search": lambda: api.workspace.search(params["pattern"], regex=True),
}
result = await found[params["kind"]]()
plain = [dataclasses.asdict(each) if dataclasses.is_dataclass(each) else each for each in result] if isinstance(
    result, list) else dataclasses.asdict(result)
from codespace_es.tools import ToolResult
return ToolResult("", details=plain)
""", more=_READ_ONLY),
    "patches": with_body("patches", """
import dataclasses
from codespace_es.tools import ToolResult
outcome = await api.apply_patch(**params)
return ToolResult(outcome.status, details=dataclasses.asdict(outcome))
"""),
    "runs": with_body("runs", """
import dataclasses
from codespace_es.tools import ToolResult
outcome = await api.exec(params["argv"], params.get("timeout"))
return ToolResult("ok" if outcome.is_success else "bad", details=dataclasses.asdict(outcome))
"""),
    "lingers": """
import anyio
def create_tool(api):
    async def later():
        await anyio.sleep(0.05)
        try:
            await api.workspace.read("letters.txt")
        except Exception as error:
            api.logger.warning("AFTERWARDS %s", error)
    async def execute(call_id, params, context):
        import asyncio
        api.kept = asyncio.get_running_loop().create_task(later())
        return "done"
    return {"name": "lingers", "label": "L", "description": "D", "execute": execute, "parameters": {"type": "object"},
            "annotations": {"readOnlyHint": True}}
""",
}
NAMES = sorted([
    "repeat", "blocking", "greet", "prints", "raises", "raises_half", "exits", "says_no", "odd_results", "slow",
    "reads", "patches", "runs", "lingers",
])


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    scratch = tmp_path_factory.mktemp("server")
    write_tools(scratch / "data" / "tools", **FILES)
    (scratch / "ws").mkdir()
    (scratch / "ws" / "letters.txt").write_text("añb\nbcd\n", encoding="utf-8")
    return scratch


@pytest.fixture(scope="module")
async def client(scratch: Path) -> AsyncIterator[Client]:
    with anyio.fail_after(5 * SECONDS_MAX):
        (scratch / "look").mkdir()
        command = product(scratch, f"demo={scratch / 'ws'}", f"look={scratch / 'look'}:read-only")
        async with connected(command, scratch) as connection:
            yield connection


async def test_they_are_listed_behind_the_servers_own_by_name(client: Client) -> None:
    tools = (await client.list_tools()).tools
    assert [tool.name for tool in tools[-len(NAMES):]] == NAMES
    assert tools[-len(NAMES) - 1].name not in NAMES
    greet = next(tool for tool in tools if tool.name == "greet")
    assert greet.title == "Greet"
    assert greet.description == "Say hello."
    assert greet.input_schema == {
        "type": "object",
        "properties": {
            "workspace_id": {"type": "string"},
            "work_id": {"type": "string", "description": "The work this belongs to."},
            "name": {"type": "string"},
        },
        "required": ["workspace_id", "name"],
    }
    assert greet.annotations is not None
    assert greet.annotations.read_only_hint is True
    patches = next(tool for tool in tools if tool.name == "patches")
    assert patches.annotations is not None
    assert (patches.annotations.read_only_hint, patches.annotations.destructive_hint) == (False, True)


async def test_workspace_info_names_tools_and_faults(client: Client) -> None:
    told = await ask(client, "workspace_info")
    assert told["custom_tools"] == {
        "tools": NAMES,
        "errors": [{"source": "tools/broken.py", "message": "SyntaxError: invalid syntax (line 1)."}],
    }
    assert told["tools_exposed"][-len(NAMES):] == NAMES


async def test_a_call_is_answered_with_what_the_tool_returned(client: Client) -> None:
    assert await ask(client, "greet", workspace_id="demo", name="you") == {"content": "hello you"}
    work = (await ask(client, "work_open", workspace_id="demo"))["work_id"]
    told = await ask(client, "repeat", workspace_id="demo", work_id=work, count=3.0, word=None)
    await ask(client, "work_finish", work_id=work)
    assert told["coordination"]["work_id"] == work
    assert told["content"] == "www"
    assert told["details"] == {"count": 3, "work": work}
    assert told["work_id"] == work


@pytest.mark.parametrize(("tool", "arguments", "field"), [
    ("greet", {}, "name"),
    ("greet", {"name": 3}, "name"),
    ("greet", {"name": None}, "name"),
    ("repeat", {}, "count"),
    ("repeat", {"count": 0}, "count"),
    ("repeat", {"count": "many"}, "count"),
    ("greet", {"name": "x", "work_id": 3}, "work_id"),
])
async def test_arguments_are_checked_by_its_schema(
    client: Client, tool: str, arguments: dict[str, Any], field: str
) -> None:
    told = await refused(client, tool, workspace_id="demo", **arguments)
    assert (told["code"], told["detail"]["field"]) == ("INVALID_ARGUMENT", field)


async def test_the_workspace_has_to_be_named_and_known(client: Client) -> None:
    assert (await refused(client, "greet", name="x"))["detail"] == {"field": "workspace_id"}
    assert (await refused(client, "greet", name="x", workspace_id="no"))["code"] == "WORKSPACE_NOT_FOUND"


async def test_what_it_prints_goes_to_the_servers_log(client: Client, scratch: Path) -> None:
    assert await ask(client, "prints", workspace_id="demo") == {"content": ""}
    log = read_log(scratch)
    for words in ("BY PYTHON", "BY HALF \\ud800", "BY DESCRIPTOR", "BY A CHILD", "BY STDERR", "prints.py: BY LOGGER 7"):
        assert words in log


@pytest.mark.parametrize(("tool", "code", "message"), [
    ("raises", "TOOL_FAILED", "raises failed: ValueError: no such luck."),
    ("raises_half", "TOOL_FAILED", "raises_half failed: ValueError: half a character: \\ud800."),
    ("exits", "TOOL_FAILED", "exits failed: SystemExit: 4."),
    ("slow", "TIMEOUT", "slow took longer than 0.2 s and was stopped."),
    ("says_no", "TOOL_FAILED", "it is no use"),
])
async def test_a_call_that_fails_says_how(client: Client, tool: str, code: str, message: str) -> None:
    told = await refused(client, tool, workspace_id="demo")
    assert (told["code"], told["message"]) == (code, message)
    assert told.get("detail", {}) == ({"details": {"tried": 3}} if tool == "says_no" else {})


@pytest.mark.parametrize(("kind", "answered"), [
    ("none", {"content": ""}),
    ("list", {"content": "x", "details": [1, None]}),
    ("number", "odd_results failed: TypeError: execute returned int; return a string or a ToolResult."),
    ("bytes", "odd_results failed: TypeError: the content of a ToolResult is a string, not bytes."),
    ("nan", "odd_results failed: ValueError: details has to be JSON: Out of range float values"),
    ("set", "odd_results failed: ValueError: details has to be JSON: Object of type set"),
    ("half", "odd_results failed: ValueError: execute returned what isn't valid Unicode."),
    ("large", "odd_results failed: ValueError: execute returned 5000"),
])
async def test_what_it_returns_is_checked(client: Client, kind: str, answered: dict[str, Any] | str) -> None:
    if isinstance(answered, dict):
        assert await ask(client, "odd_results", workspace_id="demo", kind=kind) == answered
    else:
        told = await refused(client, "odd_results", workspace_id="demo", kind=kind)
        assert told["message"].startswith(answered)


async def test_it_reads_the_workspace_and_nothing_else(client: Client) -> None:
    read = await ask(client, "reads", workspace_id="demo", kind="read", path="letters.txt")
    assert read["details"]["text"] == "añb\nbcd\n"
    assert read["details"]["is_lossy"] is False
    assert read["details"]["version"].startswith("sha256:")
    assert (await ask(client, "reads", workspace_id="demo", kind="find", glob="*.txt"))["details"] == ["letters.txt"]
    assert (await ask(client, "reads", workspace_id="demo", kind="search", pattern="b.d"))["details"] == [
        {"path": "letters.txt", "line": 2, "column": 1, "text": "bcd"},
    ]
    assert (await ask(client, "blocking", workspace_id="demo"))["content"] == "añb\nbcd\n"
    escape = await refused(client, "reads", workspace_id="demo", kind="read", path="../data/codespace.db")
    assert escape["code"] == "PATH_ESCAPE"
    assert (await refused(client, "reads", workspace_id="demo", kind="search", pattern="("))["code"] == (
        "INVALID_ARGUMENT"
    )


async def test_a_large_file_is_read_whole_or_refused(client: Client, scratch: Path) -> None:
    text = "é\n" * 1_390_000
    (scratch / "ws" / "large.txt").write_text(text, encoding="utf-8")
    (scratch / "ws" / "larger.txt").write_text(text * 2, encoding="utf-8")
    read = {"workspace_id": "demo", "kind": "read"}
    told = await refused(client, "reads", **read, path="large.txt")
    assert told["message"].startswith("reads failed: ValueError: execute returned 5560")  # it was read, all of it
    assert (await refused(client, "reads", **read, path="larger.txt"))["code"] == "OUTPUT_LIMIT"


def patch(*lines: str) -> str:
    return "\n".join(["*** Begin Patch", *lines, "*** End Patch"]) + "\n"


async def test_its_patch_is_an_operation_that_names_it(client: Client, scratch: Path) -> None:
    added = patch("*** Add File: made.txt", "+by a tool")
    previewed = await ask(client, "patches", workspace_id="demo", patch=added, check_only=True)
    assert previewed["content"] == "checked"
    assert "+by a tool" in previewed["details"]["diff"]
    told = (await ask(client, "patches", workspace_id="demo", patch=added, operation_key="k1"))["details"]
    assert (told["status"], told["files"]) == ("applied", ["made.txt"])
    status = await ask(client, "operation_status", operation_id=told["operation_id"])
    assert (status["status"], status["source"]) == ("applied", "patches")
    again = (await ask(client, "patches", workspace_id="demo", patch=added, operation_key="k1"))["details"]
    assert again["operation_id"] == told["operation_id"]
    await ask(client, "operation_revert", operation_id=told["operation_id"])
    assert not (scratch / "ws" / "made.txt").exists()


@pytest.mark.parametrize(("arguments", "code"), [
    ({"patch": "nonsense"}, "INVALID_PATCH"),
    ({"patch": patch("*** Delete File: not_there")}, "FILE_NOT_FOUND"),
    ({"patch": patch("*** Add File: ../out", "+x")}, "PATH_ESCAPE"),
    ({"patch": patch("*** Add File: .git/hooks/x", "+x")}, "PATH_PROTECTED"),
    ({"patch": patch("*** Add File: x", "+x"), "expected_versions": {"letters.txt": "absent"}}, "VERSION_CONFLICT"),
    ({"patch": patch("*** Add File: x", "+x"), "expected_versions": {"letters.txt": "old"}}, "INVALID_ARGUMENT"),
    ({"patch": 3}, "INVALID_ARGUMENT"),
])
async def test_a_patch_that_is_refused_raises_in_the_tool(
    client: Client, arguments: dict[str, Any], code: str
) -> None:
    assert (await refused(client, "patches", workspace_id="demo", **arguments))["code"] == code


async def test_its_command_runs_to_the_end(client: Client) -> None:
    told = (await ask(client, "runs", workspace_id="demo", argv=["sh", "-c", "pwd; echo é; exit 3"]))
    assert told["content"] == "bad"
    details = told["details"]
    assert (details["termination"], details["exit_code"], details["is_output_cut"]) == ("exited", 3, False)
    assert details["output"].endswith("ws\né\n")
    status = await ask(client, "process_status", process_id=details["process_id"])
    assert status["exit_code"] == 3
    told = await ask(client, "runs", workspace_id="demo", argv=["sh", "-c", "seq 300000"])
    assert told["content"] == "ok"
    assert told["details"]["is_output_cut"] is True
    told = await ask(client, "runs", workspace_id="demo", argv=["sleep", "1000"], timeout=0.1)
    assert told["details"]["termination"] == "timeout"
    refusal = await refused(client, "runs", workspace_id="demo", argv=["no-such-program"])
    assert refusal["code"] == "PROCESS_SPAWN_FAILED"
    assert (await refused(client, "runs", workspace_id="demo", argv="sh"))["message"].startswith(
        "runs failed: TypeError: argv is a list"
    )


async def test_a_read_only_workspace_has_only_the_tools_that_are(client: Client) -> None:
    assert await ask(client, "greet", workspace_id="look", name="you") == {"content": "hello you"}
    assert (await refused(client, "runs", workspace_id="look", argv=["true"]))["code"] == "UNAUTHORIZED"


async def test_nothing_can_be_asked_after_the_call(client: Client, scratch: Path) -> None:
    await ask(client, "lingers", workspace_id="demo")
    with anyio.fail_after(SECONDS_MAX):
        while "AFTERWARDS" not in read_log(scratch):
            await anyio.sleep(0.01)
    assert "AFTERWARDS TOOL_FAILED: The call that asks is over." in read_log(scratch)


async def test_a_call_that_is_cancelled_ends_its_command(client: Client) -> None:
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(client.call_tool, "runs", {"workspace_id": "demo", "argv": ["sleep", "1000"]})
        while not (await _live(client)):
            await anyio.sleep(0.01)
        tasks.cancel_scope.cancel()
    with anyio.fail_after(SECONDS_MAX):
        while await _live(client):
            await anyio.sleep(0.05)


async def _live(client: Client) -> list[Any]:
    contents = (await client.read_resource("codespace://processes")).contents
    return json.loads(contents[0].text)["processes"]  # type: ignore[union-attr]


async def test_an_unknown_tool_is_told_with_all_names(client: Client) -> None:
    with pytest.raises(Exception, match=r"Unknown tool 'gree'; there are: .*apply_patch.*greet"):
        await client.call_tool("gree", {})


async def test_over_http_too(tmp_path: Path) -> None:
    write_tools(tmp_path / "data" / "tools", greet=GOOD, broken="def (")
    (tmp_path / "ws").mkdir()
    with anyio.fail_after(2 * SECONDS_MAX):
        async with serving(http_product(tmp_path, f"demo={tmp_path / 'ws'}"), tmp_path, token=TOKEN) as server:
            for era in ERAS:
                async with server.client(era) as client:
                    assert (await client.list_tools()).tools[-1].name == "greet"
                    assert await ask(client, "greet", workspace_id="demo", name="you") == {"content": "hello you"}
                    assert (await refused(client, "greet", workspace_id="demo"))["code"] == "INVALID_ARGUMENT"
                    assert len((await ask(client, "workspace_info"))["custom_tools"]["errors"]) == 1


_STUBBORN = """
import anyio
while True:
    try:
        await anyio.sleep(100)
    except BaseException:
        pass
"""
_QUICK = '"timeout": 0.2'

BAD_CALLS = {
    "blocks": with_body("blocks", "import time\ntime.sleep(1000)", more=_QUICK),
    "thread": with_body("thread", "import time\ntime.sleep(1000)", more=_QUICK).replace("async def ex", "def ex"),
    "stubborn": with_body("stubborn", _STUBBORN, more=_QUICK),
    "leaves": with_body("leaves", "import os\nos._exit(9)"),
}


async def test_tools_that_take_their_process_down_are_skipped_and_the_server_lives(tmp_path: Path) -> None:
    write_tools(tmp_path / "data" / "tools", **BAD_CALLS, greet=GOOD)
    (tmp_path / "ws").mkdir()
    codes = dict.fromkeys(BAD_CALLS, "TIMEOUT") | {"leaves": "TOOL_FAILED"}
    with anyio.fail_after(3 * SECONDS_MAX):
        async with connected(product(tmp_path, f"demo={tmp_path / 'ws'}"), tmp_path) as client:
            # Nobody knows for certain who it was of those that shared the process; then each has one of its own.
            assert (await refused(client, "blocks", workspace_id="demo"))["code"] == "TIMEOUT"
            [suspicion] = (await ask(client, "workspace_info"))["custom_tools"]["errors"]
            assert suspicion == {
                "source": "tools/blocks.py",
                "message": "a call went on after its limit of 0.2 s, while a call of it ran; from now on it has a "
                           "process of its own, and is skipped if that happens again.",
            }
            for tool, code in codes.items():
                assert (await refused(client, tool, workspace_id="demo"))["code"] == code
                assert await ask(client, "greet", workspace_id="demo", name="you") == {"content": "hello you"}
            while (told := (await ask(client, "workspace_info"))["custom_tools"])["tools"] != ["greet"]:
                await anyio.sleep(0.05)
            assert sorted(fault["source"] for fault in told["errors"]) == sorted(
                f"tools/{tool}.py" for tool in BAD_CALLS
            )
            assert all(
                fault["message"].endswith("it is skipped until the server starts again.") for fault in told["errors"]
            )
            assert await ask(client, "greet", workspace_id="demo", name="you") == {"content": "hello you"}
            for tool in BAD_CALLS:
                gone = await refused(client, tool, workspace_id="demo")
                assert gone["code"] == "TOOL_FAILED"
                assert gone["message"].startswith(f"{tool} can't be called: ")
            listed = [tool.name for tool in (await client.list_tools()).tools]
            assert listed[-1] == "greet"
            assert not set(listed) & set(BAD_CALLS)


async def test_approvals_hold_what_a_tool_does(tmp_path: Path) -> None:
    write_tools(tmp_path / "data" / "tools", patches=FILES["patches"], runs=FILES["runs"], catches=with_body(
        "catches", """
from codespace_es.tools import CodespaceError
try:
    await api.apply_patch(params["patch"])
except CodespaceError as error:
    return f"{error.code}: {error.detail['approval_id']}"
"""))
    (tmp_path / "ws").mkdir()
    configuration = tmp_path / "c.toml"
    configuration.write_text(f"""
[workspaces.demo]
root = "{tmp_path / 'ws'}"
profile = "workspace-write"
approvals = "confirm"
""")
    added = patch("*** Add File: made.txt", "+x")
    with anyio.fail_after(2 * SECONDS_MAX):
        async with connected([*product(tmp_path), "--config", str(configuration)], tmp_path) as client:
            held = await refused(client, "patches", workspace_id="demo", patch=added)
            assert held["code"] == "APPROVAL_REQUIRED"
            assert (await refused(client, "patches", workspace_id="demo", patch=added))["approval_id"] == (
                held["approval_id"]
            )
            caught = await ask(client, "catches", workspace_id="demo", patch=added)
            assert caught["content"] == f"APPROVAL_REQUIRED: {held['approval_id']}"
            command = await refused(client, "runs", workspace_id="demo", argv=["touch", "made_too"])
            assert command["code"] == "APPROVAL_REQUIRED"
            assert list((tmp_path / "ws").iterdir()) == []
            for refusal in (held, command):
                await ask(client, "approval_resolve", approval_id=refusal["approval_id"], decision="grant")
                await ask(client, "operation_resume", approval_id=refusal["approval_id"])
            with anyio.fail_after(SECONDS_MAX):
                while sorted(path.name for path in (tmp_path / "ws").iterdir()) != ["made.txt", "made_too"]:
                    await anyio.sleep(0.01)


async def test_nobody_waits_for_a_file_that_loads_slowly_but_who_asks_for_tools(tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    slow = f"import os, time\nwhile not os.path.exists({str(gate)!r}):\n    time.sleep(0.01)\n{GOOD}"
    write_tools(tmp_path / "data" / "tools", slow=slow)
    (tmp_path / "ws").mkdir()
    with anyio.fail_after(2 * SECONDS_MAX):
        async with raw_client(product(tmp_path, f"demo={tmp_path / 'ws'}"), tmp_path) as client:
            await client.send({"jsonrpc": "2.0", "id": 7, "method": "tools/list", "params": {}})
            assert (await client.call("find", workspace_id="demo"))["paths"] == []  # and not the list
            gate.touch()
            listed = await client.receive()
    assert listed["id"] == 7
    assert listed["result"]["tools"][-1]["name"] == "greet"


async def test_a_process_of_tools_ends_with_its_server(tmp_path: Path) -> None:
    write_tools(tmp_path / "data" / "tools", tells=with_body(
        "tells", "import os\nreturn str(os.getpid())", more=_READ_ONLY
    ))
    (tmp_path / "ws").mkdir()
    with anyio.fail_after(2 * SECONDS_MAX):
        async with connected(product(tmp_path, f"demo={tmp_path / 'ws'}"), tmp_path) as client:
            pid = int((await ask(client, "tells", workspace_id="demo"))["content"])
        while Path(f"/proc/{pid}").exists():
            await anyio.sleep(0.01)
