"""Bad input through a real client: a typed error that says what to do, nothing changed, and the server goes on."""

import json
import os
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client, MCPError

from codespace_es.vocabulary.limits import SEARCH_FILE_BYTES_MAX
from support.stdio_client import SECONDS_MAX, ask, connected, product, read_log, refused

pytestmark = pytest.mark.anyio

VALUES: list[Any] = [
    None, True, False, 0, -1, 2**63, 2**70, -(2**70), 1.5, 1e300, "", [], {}, ["x"], {"a": 1}, "\0", "x" * 100_000,
    "\U0001f600", "sha256:zz", "../x", "/etc/passwd", "{" * 2_000, "(" * 4_000,
]
VALID: dict[str, dict[str, Any]] = {
    "workspace_info": {"workspace_id": "demo"},
    "read": {"workspace_id": "demo", "path": "a.txt"},
    "find": {"workspace_id": "demo"},
    "search": {"workspace_id": "demo", "pattern": "zz"},
    "apply_patch": {"workspace_id": "demo", "patch": "x", "check_only": True},
    "operation_status": {"operation_id": "op-x"},
    "operation_revert": {"operation_id": "op-x"},
}
OF_OUR_MAKING = {"INTERNAL", "STORE_UNAVAILABLE"}
SPARSE_BYTES = 2 * SEARCH_FILE_BYTES_MAX
ERROR_BYTES_MAX = 50_000
"""Twice told, and once more within: a caller's own words come back cut."""


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("ws")
    (made / "a.txt").write_text("a\n")
    (made / "binary").write_bytes(b"\0\xff\xfe")
    (made / "directory").mkdir()
    os.mkfifo(made / "fifo")
    os.symlink("/etc/passwd", made / "link")
    os.symlink("directory", made / "through")
    with open(os.fsencode(made) + b"/n\xff.txt", "w", encoding="ascii") as file:
        file.write("odd\n")
    with (made / "sparse").open("wb") as file:
        file.truncate(SPARSE_BYTES)
    return made


@pytest.fixture(scope="module")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("server")


@pytest.fixture(scope="module")
async def client(scratch: Path, root: Path) -> AsyncIterator[Client]:
    async with connected(product(scratch, f"demo={root}:workspace-write"), scratch) as connection:
        yield connection


@pytest.fixture(autouse=True)
def nothing_changed(root: Path, scratch: Path) -> Iterator[None]:
    """Every file, directory and mode is what it was, and no traceback was told to anybody."""
    before = _look(root)
    yield
    assert _look(root) == before
    assert "Traceback" not in read_log(scratch)


def _look(root: Path) -> dict[bytes, tuple[int, int, int]]:
    found: dict[bytes, tuple[int, int, int]] = {}
    for directory, names, files in os.walk(os.fsencode(root)):
        for name in [*names, *files]:
            status = os.lstat(os.path.join(directory, name))
            found[os.path.join(directory, name)] = (status.st_mode, status.st_size, status.st_mtime_ns)
    return found


def patch(*lines: str) -> str:
    return "\n".join(["*** Begin Patch", *lines, "*** End Patch"]) + "\n"


async def told(client: Client, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """Return what any call is told, which is a result, bounded, and never a fault of ours."""
    result = await client.call_tool(tool, arguments)
    body = result.structured_content
    assert body is not None
    if result.is_error:
        assert set(body) >= {"code", "message", "retry", "remedy"}
        assert body["code"] not in OF_OUR_MAKING, body
        assert len(json.dumps(body)) < ERROR_BYTES_MAX
    return body


@pytest.mark.parametrize("tool", VALID)
async def test_any_value_for_any_argument_gets_a_typed_answer(client: Client, tool: str) -> None:
    with anyio.fail_after(SECONDS_MAX):
        listed = {each.name: each for each in (await client.list_tools()).tools}
        for field in listed[tool].input_schema["properties"]:
            for value in VALUES:
                arguments = {**VALID[tool], field: value}
                if tool == "operation_status":
                    arguments = {field: value}
                await told(client, tool, arguments)


PATHS = {
    "../x": "PATH_ESCAPE", "a/../../x": "PATH_ESCAPE", "/etc/passwd": "PATH_ESCAPE", "/proc/self/mem": "PATH_ESCAPE",
    "a\0b": "PATH_ESCAPE", "link": "SYMLINK_REJECTED", "through/x": "SYMLINK_REJECTED",
    "fifo": "SPECIAL_FILE_REJECTED", "directory": "SPECIAL_FILE_REJECTED", "a.txt/b": "PATH_NOT_DIRECTORY",
    "y" * 300: "FILE_OPERATION_FAILED", "y" * 100_000: "FILE_OPERATION_FAILED", "d/" * 5_000 + "f":
    "FILE_OPERATION_FAILED",
}


@pytest.mark.parametrize("path", PATHS, ids=lambda path: repr(path[:20]))
async def test_a_path_that_cannot_be_used_is_refused_alike_by_every_way_in(client: Client, path: str) -> None:
    code = PATHS[path]
    adding = patch(f"*** Add File: {path}", "+x")
    calls: list[tuple[str, dict[str, Any]]] = [
        ("read", {"path": path}),
        ("apply_patch", {"patch": adding}),
        ("apply_patch", {"patch": adding, "check_only": True}),
        ("apply_patch", {"patch": patch(f"*** Update File: {path}", "@@", "-a", "+b")}),
        ("apply_patch", {"patch": patch(f"*** Delete File: {path}")}),
        ("apply_patch", {"patch": patch("*** Update File: a.txt", f"*** Move to: {path}", "@@", "-a", "+b")}),
    ]
    with anyio.fail_after(SECONDS_MAX):
        for tool, arguments in calls:
            body = await refused(client, tool, workspace_id="demo", **arguments)
            assert body["code"] == code, (tool, arguments, body)
            assert len(json.dumps(body)) < ERROR_BYTES_MAX
        body = await refused(
            client, "apply_patch", workspace_id="demo", patch=patch("*** Add File: q", "+x"),
            expected_versions={path: "sha256:" + "0" * 64},
        )
    assert body["code"] in {code, "INVALID_ARGUMENT"}


async def test_a_path_of_megabytes_ends_at_once(client: Client) -> None:
    """Its millions of parents are never listed."""
    with anyio.fail_after(SECONDS_MAX):
        body = await refused(
            client, "apply_patch", workspace_id="demo", patch=patch("*** Add File: " + "d/" * 3_500_000 + "f", "+x")
        )
    assert body["code"] == "FILE_OPERATION_FAILED"
    assert "too long" in body["message"]
    assert len(json.dumps(body)) < 5_000


@pytest.mark.parametrize(("field", "value"), [
    ("work_id", "w" * 1_000_000), ("operation_key", "k" * 1_001), ("expected_versions", {"z" * 5_000: "absent"}),
    ("expected_versions", {f"z{number}": "absent" for number in range(10_001)}),
    ("expected_versions", {"a.txt": "v1"}),
])
async def test_what_is_stored_with_an_event_is_bounded(client: Client, field: str, value: Any) -> None:
    with anyio.fail_after(SECONDS_MAX):
        body = await refused(
            client, "apply_patch", workspace_id="demo", patch=patch("*** Add File: q", "+x"), **{field: value}
        )
    assert body["code"] == "INVALID_ARGUMENT"
    assert body["detail"]["field"].startswith(field)
    assert "operation_id" not in body


async def test_what_is_too_large_to_search_is_read_in_windows_and_never_patched(client: Client) -> None:
    end = SPARSE_BYTES
    with anyio.fail_after(SECONDS_MAX):
        window = await ask(client, "read", workspace_id="demo", path="sparse", offset=end - 3)
        updated = await refused(
            client, "apply_patch", workspace_id="demo", patch=patch("*** Update File: sparse", "@@", "-a", "+b")
        )
        deleted = await refused(client, "apply_patch", workspace_id="demo", patch=patch("*** Delete File: sparse"))
        searched = await ask(client, "search", workspace_id="demo", pattern="odd")
    assert (window["byte_count"], window["truncated"]) == (3, False)
    assert (updated["code"], deleted["code"]) == ("INVALID_PATCH", "INVALID_PATCH")
    assert searched["incomplete"] is True
    assert [match["path"] for match in searched["matches"]] == ["n\\xff.txt"]


@pytest.mark.parametrize(("text", "code"), [
    ("", "INVALID_PATCH"), ("\n" * 1_000_000, "INVALID_PATCH"), ("x" * 8_388_607, "INVALID_PATCH"),
    ("```\n" * 1_000_000, "INVALID_PATCH"), ("x" * 8_388_609, "INVALID_PATCH"),
    (patch(*(f"*** Add File: m/{number}\n+x" for number in range(1_001))), "INVALID_PATCH"),
    (patch("*** Update File: a.txt", *(["@@\n-nothing\n+x"] * 200_000)), "INVALID_PATCH"),
    (patch("*** Update File: binary", "@@", "-a", "+b"), "INVALID_PATCH"),
    (patch("*** Add File: .git/hooks/post-commit", "+x"), "PATH_PROTECTED"),
    (patch("*** Add File: a.txt", "+x"), "ADD_FILE_EXISTS"),
    (patch("*** Delete File: nothing"), "FILE_NOT_FOUND"),
], ids=["empty", "newlines", "letters", "fences", "too large", "1001 files", "200000 hunks", "not text", "protected",
        "exists", "missing"])
async def test_a_patch_that_cannot_be_applied_says_why(client: Client, text: str, code: str) -> None:
    with anyio.fail_after(SECONDS_MAX):
        body = await refused(client, "apply_patch", workspace_id="demo", patch=text)
        assert (await ask(client, "workspace_info"))["server"] == "codespace"
    assert body["code"] == code
    assert len(json.dumps(body)) < 5_000


async def test_ids_of_other_things_name_no_operation(client: Client) -> None:
    with anyio.fail_after(SECONDS_MAX):
        content = (await client.read_resource("codespace://timeline?after=0")).contents[0]
        streams = {event["stream_id"] for event in json.loads(content.text)["events"]}  # type: ignore[union-attr]
        others = {stream for stream in streams if not stream.startswith("op-")} | {"store", "claim-x", "", "op-"}
        assert len(others) > 4
        for stream in others:
            for tool in ("operation_status", "operation_revert"):
                assert (await refused(client, tool, operation_id=stream))["code"] == "OPERATION_NOT_FOUND"


@pytest.mark.parametrize("glob", ["{" * 400, "{a,b}" * 100, "[z-a]", "[a", "x" * 5_000])
async def test_a_glob_that_cannot_be_understood_is_named(client: Client, glob: str) -> None:
    with anyio.fail_after(SECONDS_MAX):
        for tool, more in (("find", {}), ("search", {"pattern": "x"})):
            body = await refused(client, tool, workspace_id="demo", glob=glob, **more)
            assert (body["code"], body["detail"]["field"]) == ("INVALID_ARGUMENT", "glob")


@pytest.mark.parametrize("uri", [
    "codespace://operations/store", "codespace://operations/%00", "codespace://timeline?after=-1", "", "http://[::1",
    "codespace://timeline?after=" + "9" * 30, "codespace://operations/" + "x" * 100_000, "codespace://workspaces?x",
])
async def test_a_resource_that_is_not_there_is_a_protocol_error(client: Client, uri: str) -> None:
    with anyio.fail_after(SECONDS_MAX):
        with pytest.raises(MCPError) as caught:
            await client.read_resource(uri)
        assert caught.value.error.code == -32002
        assert (await ask(client, "workspace_info"))["server"] == "codespace"
