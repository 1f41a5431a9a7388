"""The tools over a real connection, in both protocol eras: the acceptance checks of the contract (B10) by number."""

import json
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client, MCPError

from support.stdio_client import ERAS, SECONDS_MAX, Era, ask, connected, product, refused
from support.warm_servers import from_nothing

pytestmark = pytest.mark.anyio

GOLDEN = Path(__file__).parents[1] / "architecture" / "golden" / "tool_schemas.json"
TOOLS = [tool["name"] for tool in json.loads(GOLDEN.read_text(encoding="utf-8"))]


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module", params=ERAS)
def era(request: pytest.FixtureRequest) -> Era:
    chosen: Era = request.param
    return chosen


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory, era: Era) -> Path:
    return tmp_path_factory.mktemp("ws")


@pytest.fixture(scope="module")
async def client(tmp_path_factory: pytest.TempPathFactory, root: Path, era: Era) -> AsyncIterator[Client]:
    scratch = tmp_path_factory.mktemp("server")
    looked_at = tmp_path_factory.mktemp("look")
    (looked_at / "keep.txt").write_text("hi")
    os.symlink("keep.txt", looked_at / "link.txt")
    command = product(scratch, f"demo={root}:workspace-write", f"look={looked_at}:read-only")
    async with connected(from_nothing(command) if era == ERAS[0] else command, scratch, era) as connection:
        yield connection


def add(path: str, *lines: str) -> str:
    body = "".join(f"+{line}\n" for line in lines)
    return f"*** Begin Patch\n*** Add File: {path}\n{body}*** End Patch\n"


def update(path: str, old: str, new: str) -> str:
    return f"*** Begin Patch\n*** Update File: {path}\n@@\n-{old}\n+{new}\n*** End Patch\n"


async def test_the_connection_is_of_the_era_asked_for_and_says_who_serves(client: Client, era: Era) -> None:
    """Checks 18, 48, 55, 57, 71."""
    with anyio.fail_after(SECONDS_MAX):
        assert client.protocol_version == era
        assert client.server_info is not None
        assert client.server_info.name == "codespace"
        assert [tool.name for tool in (await client.list_tools()).tools] == TOOLS
        told = await ask(client, "workspace_info")
    assert told["server"] == "codespace"
    assert told["version"] == client.server_info.version
    assert told["internal_model_calls"] is False
    assert told["tools_exposed"] == TOOLS
    assert told["transports"] == ["stdio", "streamable-http"]
    assert told["workspace_id"] is None
    assert told["workspace_id_is_credential"] is False
    assert isinstance(told["note"], str)
    assert "execution" not in told


async def test_instructions_speak_of_what_a_model_has_to_know(client: Client) -> None:
    for topic in (
        "offset", "limit", "next_offset", "content_lossy", "incomplete", "listing_version", "OUTPUT_LIMIT",
        "WORKSPACE_BUSY", "RESOURCE_QUEUE_FULL", "unknown", "operation_status", "operation_key", "expected_versions",
        "check_only", "operation_revert", "exec_command", "process_id", "read_process", "process_status",
        "dispatch_status", "EOF isn't success", "output_lost", "signaled", "24x80", "process_resize", "PROCESS_NOT_TTY",
        "PROCESS_NOT_RUNNING", "tty_size", "sandbox_level", "APPROVAL_REQUIRED",
    ):
        assert topic in (client.instructions or ""), topic


async def test_a_workspace_tells_what_it_allows_and_nothing_unlocks_it(client: Client, root: Path) -> None:
    """Checks 29, 30, 51, 68."""
    with anyio.fail_after(SECONDS_MAX):
        written = await ask(client, "workspace_info", workspace_id="demo")
        looked = await ask(client, "workspace_info", workspace_id="look", approved=True)
        unknown = await refused(client, "workspace_info", workspace_id="nowhere")
        nameless = await ask(client, "workspace_info", workspace_id="")
    assert unknown["code"] == "WORKSPACE_NOT_FOUND"
    assert nameless["workspace_id"] is None
    assert (written["workspace_id"], written["profile"], written["root"]) == ("demo", "workspace-write", str(root))
    assert written["execution"]["files"]["patch"]["available"] is True
    assert (looked["workspace_id"], looked["profile"]) == ("look", "read-only")
    assert looked["workspace_id_is_credential"] is False
    assert looked["execution"]["files"]["patch"]["available"] is False
    assert looked["execution"]["files"]["capabilities"] == {
        "read_range": True, "find_pagination": True, "read_max_bytes": 1048576, "find_max_paths": 10000,
    }
    assert looked["warnings"] == [{"kind": "unknown_argument", "message": "unknown argument 'approved'"}]
    assert "environment_id" not in json.dumps([written, looked])


async def test_a_preview_writes_nothing_and_the_patch_writes_what_it_said(client: Client, root: Path) -> None:
    """Checks 1, 2, 3."""
    (root / "keep.txt").write_text("kept\n")
    patch = add("created.txt", "hello")
    with anyio.fail_after(SECONDS_MAX):
        checked = await ask(
            client, "apply_patch", workspace_id="demo", patch=patch, check_only=True, operation_key="preview-1"
        )
        assert checked["status"] == "checked"
        assert not (root / "created.txt").exists()
        applied = await ask(client, "apply_patch", workspace_id="demo", patch=patch, operation_key="apply-1")
        read = await ask(client, "read", workspace_id="demo", path="created.txt")
    assert (applied["status"], applied["replayed"], applied["files"]) == ("applied", False, ["created.txt"])
    assert (root / "created.txt").read_text() == "hello\n"
    assert (root / "keep.txt").read_text() == "kept\n"
    assert read["version"].startswith("sha256:")
    change = applied["changes"][0]
    assert (change["kind"], change["after_version"]) == ("add", read["version"])
    assert change.get("before_version") is None
    assert checked["changes"][0]["after_version"] == read["version"]


async def test_an_operation_key_makes_a_patch_happen_once(client: Client, root: Path) -> None:
    """Checks 23 to 28."""
    request: dict[str, Any] = {"workspace_id": "demo", "patch": add("once.txt", "one"), "operation_key": "once"}
    with anyio.fail_after(SECONDS_MAX):
        first = await ask(client, "apply_patch", **request)
        assert (first["status"], first["replayed"]) == ("applied", False)
        assert first["operation_id"].startswith("op-")
        again = await ask(client, "apply_patch", **request)
        assert again == {**first, "replayed": True}
        other = await refused(client, "apply_patch", **{**request, "patch": add("other.txt", "two")})
        assert other["code"] == "OPERATION_KEY_CONFLICT"
        assert "operation_id" not in other
        assert not (root / "other.txt").exists()
        status = await ask(client, "operation_status", operation_id=first["operation_id"])
        assert (status["status"], status["replayed"]) == ("applied", False)
        assert await ask(client, "operation_status", operation_key="once") == status
        invented = await refused(client, "operation_status", operation_id="op-00000000-0000-4000-8000-000000000000")
        assert invented["code"] == "OPERATION_NOT_FOUND"
        nowhere = await refused(client, "apply_patch", **{**request, "workspace_id": "nowhere"})
        assert nowhere["code"] == "WORKSPACE_NOT_FOUND"


@pytest.mark.parametrize("selectors", [{}, {"operation_id": "op-x", "operation_key": "k"}])
async def test_operation_status_wants_exactly_one_selector(client: Client, selectors: dict[str, str]) -> None:
    with anyio.fail_after(SECONDS_MAX):
        assert (await refused(client, "operation_status", **selectors))["code"] == "INVALID_ARGUMENT"


async def test_a_read_only_workspace_is_never_written(client: Client) -> None:
    """Checks 5, 31."""
    with anyio.fail_after(SECONDS_MAX):
        body = await refused(client, "apply_patch", workspace_id="look", patch=add("x.txt", "x"), approved=True)
        found = await ask(client, "find", workspace_id="look")
    assert body["code"] == "UNAUTHORIZED"
    assert "operation_id" not in body
    assert body["warnings"][0]["kind"] == "unknown_argument"
    assert found["paths"] == ["keep.txt"]


async def test_a_patch_that_fails_anywhere_leaves_every_file_as_it_was(
    client: Client, root: Path, tmp_path: Path
) -> None:
    """Checks 32 to 36, 81."""
    (root / "one.txt").write_text("one\n")
    (root / "two.txt").write_text("two\n")
    (tmp_path / "outside.txt").write_text("outside\n")
    os.symlink(tmp_path / "outside.txt", root / "link.txt")
    both = update("one.txt", "one", "ONE").replace("*** End Patch\n", "") + update("two.txt", "zwei", "TWO").replace(
        "*** Begin Patch\n", ""
    )
    wrong = "sha256:" + "0" * 64
    with anyio.fail_after(SECONDS_MAX):
        version = (await ask(client, "read", workspace_id="demo", path="one.txt"))["version"]
        for code, patch, versions in [
            ("INVALID_PATCH", both, {}),
            ("VERSION_CONFLICT", update("one.txt", "one", "ONE"), {"one.txt": wrong}),
            ("ADD_FILE_EXISTS", add("one.txt", "ONE"), {"one.txt": version}),
            ("PATH_ESCAPE", add("../escape.txt", "x"), {}),
            ("SYMLINK_REJECTED", update("link.txt", "outside", "changed"), {}),
            ("INVALID_PATCH", update("one.txt", "eins", "ONE"), {}),
        ]:
            body = await refused(client, "apply_patch", workspace_id="demo", patch=patch, expected_versions=versions)
            assert body["code"] == code
            told = await ask(client, "operation_status", operation_id=body["operation_id"])
            assert (told["status"], told["error"]["code"]) == ("rejected", code)
        preview = await refused(client, "apply_patch", workspace_id="demo", patch=both, check_only=True)
        assert preview["code"] == "INVALID_PATCH"
    assert (root / "one.txt").read_text() == "one\n"
    assert (root / "two.txt").read_text() == "two\n"
    assert (tmp_path / "outside.txt").read_text() == "outside\n"
    assert not (root.parent / "escape.txt").exists()
    (root / "link.txt").unlink()


async def test_an_edit_from_outside_is_never_overwritten(client: Client, root: Path) -> None:
    """Check 80."""
    (root / "edited.txt").write_text("mine\n")
    with anyio.fail_after(SECONDS_MAX):
        version = (await ask(client, "read", workspace_id="demo", path="edited.txt"))["version"]
        (root / "edited.txt").write_text("theirs\n")
        body = await refused(
            client, "apply_patch", workspace_id="demo", patch=update("edited.txt", "mine", "ours"),
            expected_versions={"edited.txt": version},
        )
    assert body["code"] == "VERSION_CONFLICT"
    assert (root / "edited.txt").read_text() == "theirs\n"


async def test_a_flow_from_info_to_status_tells_one_story(client: Client, root: Path) -> None:
    """Checks 60, 73."""
    (root / "story.txt").write_text("before\n")
    with anyio.fail_after(SECONDS_MAX):
        read = await ask(client, "read", workspace_id="demo", path="story.txt")
        assert read["content"] == "before\n"
        assert "coordination" not in read
        done = await ask(
            client, "apply_patch", workspace_id="demo", patch=update("story.txt", "before", "after"),
            operation_key="story", expected_versions={"story.txt": read["version"]},
        )
        told = await ask(client, "operation_status", operation_id=done["operation_id"])
    assert (root / "story.txt").read_text() == "after\n"
    assert (told["kind"], told["workspace_id"], told["source"]) == ("patch", "demo", "apply_patch")
    assert [event["name"] for event in told["events"]] == ["minted", "finished"]
    assert told["events"][1]["status"] == "applied"
    assert isinstance(told["created_at"], int)
    assert isinstance(told["finished_at"], int)
    assert isinstance(told["changes"][0]["after_version"], str)


async def test_an_undo_can_be_previewed_done_and_undone(client: Client, root: Path) -> None:
    with anyio.fail_after(SECONDS_MAX):
        done = await ask(client, "apply_patch", workspace_id="demo", patch=add("undo.txt", "text"))
        seen = await ask(client, "operation_revert", operation_id=done["operation_id"], check_only=True)
        assert (seen["status"], (root / "undo.txt").exists()) == ("checked", True)
        undone = await ask(client, "operation_revert", operation_id=done["operation_id"], operation_key="undo-1")
        assert (undone["status"], undone["reverts"]) == ("applied", done["operation_id"])
        assert not (root / "undo.txt").exists()
        told = await ask(client, "operation_status", operation_id=done["operation_id"])
        assert told["reverted_by"] == undone["operation_id"]
        await ask(client, "operation_revert", operation_id=undone["operation_id"])
        assert (root / "undo.txt").read_text() == "text\n"
        (root / "undo.txt").write_text("changed\n")
        body = await refused(client, "operation_revert", operation_id=undone["operation_id"])
        assert body["code"] == "REVERT_CONFLICT"


async def test_reading_and_finding_tell_what_is_there(client: Client) -> None:
    """Checks 63, 64."""
    with anyio.fail_after(SECONDS_MAX):
        first = await ask(client, "read", workspace_id="look", path="keep.txt")
        again = await ask(client, "read", workspace_id="look", path="keep.txt")
        found = await ask(client, "find", workspace_id="look")
    assert (first["content"], first["path"], first["truncated"], first["byte_count"]) == ("hi", "keep.txt", False, 2)
    assert "offset" not in first
    assert first["version"] == again["version"]
    assert first["version"].startswith("sha256:")
    assert found["paths"] == ["keep.txt"]


async def test_windows_and_pages_continue_where_they_are_told_to(client: Client, root: Path) -> None:
    """Checks 66, 67, 68."""
    (root / "pages").mkdir()
    for name in ("a.txt", "b.txt", "c.txt"):
        (root / "pages" / name).write_text("abcdef")
    window = {"workspace_id": "demo", "path": "pages/a.txt", "limit": 3}
    page = {"workspace_id": "demo", "glob": "pages/*.txt"}
    with anyio.fail_after(SECONDS_MAX):
        head = await ask(client, "read", **window)
        tail = await ask(client, "read", **window, offset=head["next_offset"])
        one = await ask(client, "find", **page, limit=1)
        rest = await ask(client, "find", **page, offset=one["next_offset"], limit=2)
        nothing = await refused(client, "read", **{**window, "limit": 0})
        hits = await ask(client, "search", workspace_id="demo", pattern="C", case_sensitive=False, glob="pages/*")
    assert (head["content"], head["truncated"], head["byte_count"]) == ("abc", True, 3)
    assert (tail["content"], tail["truncated"], tail["offset"]) == ("def", False, 3)
    assert head["version"] == tail["version"]
    assert (one["paths"], one["truncated"]) == (["pages/a.txt"], True)
    assert "offset" not in one
    assert (rest["paths"], rest["truncated"]) == (["pages/b.txt", "pages/c.txt"], False)
    assert one["listing_version"] == rest["listing_version"]
    assert nothing["code"] == "OUTPUT_LIMIT"
    assert [(hit["path"], hit["line"], hit["column"]) for hit in hits["matches"]] == [
        (f"pages/{name}.txt", 1, 3) for name in "abc"
    ]


async def test_what_cannot_be_read_is_named_by_its_code(client: Client, root: Path) -> None:
    """Checks 65, 78."""
    (root / "plain.txt").write_text("x")
    (root / "directory").mkdir()
    os.symlink("plain.txt", root / "soft.txt")
    os.symlink("directory", root / "soft")
    os.mkfifo(root / "pipe")
    (root / "directory" / "inner.txt").write_text("x")
    with anyio.fail_after(SECONDS_MAX):
        for path, code in [
            ("missing.txt", "FILE_NOT_FOUND"),
            ("plain.txt/inner.txt", "PATH_NOT_DIRECTORY"),
            ("../plain.txt", "PATH_ESCAPE"),
            (str(root / "plain.txt"), "PATH_ESCAPE"),
            ("soft.txt", "SYMLINK_REJECTED"),
            ("soft/inner.txt", "SYMLINK_REJECTED"),
            ("pipe", "SPECIAL_FILE_REJECTED"),
            ("directory", "SPECIAL_FILE_REJECTED"),
        ]:
            assert (await refused(client, "read", workspace_id="demo", path=path))["code"] == code
    for name in ("soft.txt", "soft", "pipe"):
        (root / name).unlink()


@pytest.mark.parametrize(("tool", "arguments", "field", "words"), [
    ("read", {"workspace_id": "demo", "path": 3}, "path", "has to be a string; got a number: 3"),
    ("read", {"workspace_id": "demo"}, "path", "read needs path"),
    ("read", {"workspace_id": "demo", "pth": "x"}, "path", "'pth' isn't an argument"),
    ("read", {"workspace_id": None, "path": "x"}, "workspace_id", "needs workspace_id"),
    ("read", {"workspace_id": "demo", "path": "x", "limit": "3"}, "limit", "has to be an integer"),
    ("read", {"workspace_id": "demo", "path": "x", "limit": 1.5}, "limit", "has to be an integer"),
    ("read", {"workspace_id": "demo", "path": "x", "offset": -1}, "offset", "greater than or equal to 0"),
    ("find", {"workspace_id": "demo", "include_ignored": "yes"}, "include_ignored", "has to be true or false"),
    ("apply_patch", {"workspace_id": "demo", "patch": "x", "expected_versions": []}, "expected_versions", "an object"),
    ("apply_patch", {"workspace_id": "demo", "patch": "x", "expected_versions": {"a.py": "v1"}},
     "expected_versions.a.py", "sha256"),
])
async def test_an_argument_that_cannot_be_used_is_named(
    client: Client, tool: str, arguments: dict[str, Any], field: str, words: str
) -> None:
    with anyio.fail_after(SECONDS_MAX):
        body = await refused(client, tool, **arguments)
    assert (body["code"], body["detail"]["field"]) == ("INVALID_ARGUMENT", field)
    assert words in body["message"]


async def test_null_and_unknown_arguments_and_whole_floats_do_no_harm(client: Client) -> None:
    with anyio.fail_after(SECONDS_MAX):
        told = await ask(client, "read", workspace_id="look", path="keep.txt", limt=1, offset=None, limit=2.0)
    assert told["content"] == "hi"
    assert told["warnings"] == [
        {"kind": "unknown_argument", "message": "unknown argument 'limt'; did you mean 'limit'?"}
    ]


@pytest.mark.parametrize("offset", [10**6, 2**63, 10**30, 1e30])
async def test_an_offset_past_the_end_is_an_empty_window_however_large(client: Client, offset: float) -> None:
    with anyio.fail_after(SECONDS_MAX):
        told = await ask(client, "read", workspace_id="look", path="keep.txt", offset=offset)
        page = await ask(client, "find", workspace_id="look", offset=offset)
    assert (told["content"], told["truncated"], page["paths"]) == ("", False, [])


async def test_resources_tell_of_workspaces_operations_and_the_timeline(client: Client, root: Path, era: Era) -> None:
    async def read(uri: str) -> dict[str, Any]:
        content = json.loads((await client.read_resource(uri)).contents[0].text)  # type: ignore[union-attr]
        assert isinstance(content, dict)
        return content

    with anyio.fail_after(SECONDS_MAX):
        done = await ask(client, "apply_patch", workspace_id="demo", patch=add("told.txt", "x"))
        await refused(client, "read", workspace_id="look", path="../secret")
        listed = [str(each.uri) for each in (await client.list_resources()).resources]
        forms = [each.uri_template for each in (await client.list_resource_templates()).resource_templates]
        workspaces = await read("codespace://workspaces")
        operation = await read(f"codespace://operations/{done['operation_id']}")
        newest = await read("codespace://timeline")
        begin = await read("codespace://timeline?after=0")
        after = await read(f"codespace://timeline?after={newest['head']}")
        for unknown in ("codespace://nothing", "codespace://operations/op-00000000-0000-4000-8000-000000000000",
                        "codespace://timeline?after=x", "file:///etc/passwd"):
            with pytest.raises(MCPError) as caught:
                await client.read_resource(unknown)
            assert caught.value.error.code == (-32002 if era == "2025-11-25" else -32602)
    assert set(listed) >= {"codespace://workspaces", "codespace://approvals", "codespace://processes",
                           "codespace://timeline"}
    assert forms == ["codespace://operations/{id}", "codespace://timeline{?after}"]
    assert [each["workspace_id"] for each in workspaces["workspaces"]] == ["demo", "look"]
    assert operation["status"] == "applied"
    topics = [event["topic"] for event in newest["events"]]
    assert "operation.minted.v1" in topics
    positions = [event["position"] for event in newest["events"]]
    assert positions == list(range(positions[0], newest["head"] + 1))
    assert begin["events"][0]["topic"] == "store.created.v1"
    minted = next(e for e in newest["events"] if e["stream_id"] == done["operation_id"])
    assert minted["channel"] == "mcp"
    assert minted["client"].startswith("mcp/")
    assert minted["request_id"].startswith("req-")
    refusals = [event["event"] for event in [*newest["events"], *after["events"]]
                if event["topic"] == "instance.call_refused.v1"]
    assert {"tool": "read", "code": "PATH_ESCAPE", "workspace_id": "look"}.items() <= refusals[-1].items()
