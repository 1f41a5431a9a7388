"""What models and clients rely on, seen by a real client of either era: descriptions, schemas, small print of files."""

import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client

from support.stdio_client import ERAS, SECONDS_MAX, Era, ask, connected, product, refused

pytestmark = pytest.mark.anyio


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
    async with connected(product(scratch, f"demo={root}:workspace-write"), scratch, era) as connection:
        yield connection


def patch(*lines: str) -> dict[str, Any]:
    return {"workspace_id": "demo", "patch": "\n".join(["*** Begin Patch", *lines, "*** End Patch"]) + "\n"}


@pytest.mark.parametrize(("tool", "given", "answered"), [
    ("read", {"workspace_id", "path", "offset", "limit", "line_start", "line_end"},
     {"content", "version", "byte_count", "truncated", "content_lossy", "next_offset", "line_count"}),
    ("find", {"workspace_id", "glob", "offset", "limit", "include_ignored"},
     {"paths", "incomplete", "listing_version", "next_offset", "truncated", "ignored_count"}),
    ("search", {"workspace_id", "pattern", "regex", "glob", "case_sensitive", "context", "limit", "offset"},
     {"matches", "truncated", "incomplete", "next_offset", "files_searched", "ignored_count"}),
    ("apply_patch", {"workspace_id", "patch", "expected_versions", "operation_key", "check_only", "work_id"},
     {"status", "operation_id", "replayed", "files", "changes", "diff", "diff_truncated", "error"}),
    ("operation_status", {"operation_id", "operation_key"},
     {"operation_id", "status", "kind", "workspace_id", "created_at", "finished_at", "files", "changes", "events"}),
])
async def test_schemas_pin_what_is_given_and_answered(
    client: Client, tool: str, given: set[str], answered: set[str]
) -> None:
    """Check 49."""
    with anyio.fail_after(SECONDS_MAX):
        listed = {each.name: each for each in (await client.list_tools()).tools}[tool]
    assert given <= set(listed.input_schema["properties"])
    assert listed.output_schema is not None
    assert answered <= set(listed.output_schema["properties"])


@pytest.mark.parametrize(("tool", "words"), [
    ("read", ["next_offset", "content_lossy"]),
    ("find", ["next_offset", "incomplete", "listing_version"]),
    ("workspace_info", ["availability", "occupancy"]),
    ("apply_patch", ["status=unknown", "operation_status", "operation_key"]),
])
async def test_descriptions_name_what_a_model_has_to_know(client: Client, tool: str, words: list[str]) -> None:
    """Check 50."""
    with anyio.fail_after(SECONDS_MAX):
        listed = {each.name: each for each in (await client.list_tools()).tools}[tool]
    assert [word for word in words if word not in (listed.description or "")] == []


async def test_a_file_cannot_be_a_directory_of_its_own_patch(client: Client, root: Path) -> None:
    """Checks 69 (by decision 13), 77."""
    (root / "bystander.txt").write_text("kept\n")
    request = patch("*** Update File: bystander.txt", "@@", "-kept", "+lost", "*** Add File: first.txt", "+x",
                    "*** Add File: first.txt/nested.txt", "+y")
    with anyio.fail_after(SECONDS_MAX):
        body = await refused(client, "apply_patch", **request, operation_key="nested")
        told = await ask(client, "operation_status", operation_key="nested")
    assert body["code"] == "PATH_NOT_DIRECTORY"
    assert told["operation_id"] == body["operation_id"]
    assert (told["status"], told["error"]["code"]) == ("rejected", "PATH_NOT_DIRECTORY")
    assert not (root / "first.txt").exists()
    assert (root / "bystander.txt").read_text() == "kept\n"


async def test_a_refusal_is_replayed_as_it_was(client: Client, root: Path) -> None:
    """Contract A1: the same code and message again, although the patch could be applied by now."""
    request = {**patch("*** Update File: later.txt", "@@", "-a", "+b"), "operation_key": "too early"}
    with anyio.fail_after(SECONDS_MAX):
        first = await refused(client, "apply_patch", **request)
        (root / "later.txt").write_text("a\n")
        again = await refused(client, "apply_patch", **request)
    assert first["code"] == "FILE_NOT_FOUND"
    assert again == first
    assert (root / "later.txt").read_text() == "a\n"


async def test_windows_at_and_past_the_end_and_of_other_bytes(client: Client, root: Path) -> None:
    """T-U16."""
    (root / "bytes").write_bytes(b"ab\xff\xfecd")
    with anyio.fail_after(SECONDS_MAX):
        past = await ask(client, "read", workspace_id="demo", path="bytes", offset=100)
        lossy = await ask(client, "read", workspace_id="demo", path="bytes")
        whole = await ask(client, "read", workspace_id="demo", path="bytes", limit=1_048_576)
        for tool, more, most in (("read", {"path": "bytes"}, 1_048_576), ("find", {}, 10_000)):
            for limit in (0, most + 1, -1, 2**70):
                body = await refused(client, tool, workspace_id="demo", limit=limit, **more)
                assert body["code"] == "OUTPUT_LIMIT", (tool, limit)
    assert (past["content"], past["byte_count"], past["truncated"], past["offset"]) == ("", 0, False, 100)
    assert (lossy["byte_count"], lossy["content_lossy"], lossy["content"]) == (6, True, "ab\ufffd\ufffdcd")
    assert whole["version"] == lossy["version"] == past["version"]


async def test_a_nested_add_makes_its_directories_and_none_through_a_link(
    client: Client, root: Path, tmp_path: Path
) -> None:
    """T-U19."""
    os.symlink(tmp_path, root / "out")
    with anyio.fail_after(SECONDS_MAX):
        seen = await ask(client, "apply_patch", **patch("*** Add File: new/deep/er.txt", "+x"), check_only=True)
        assert (seen["status"], (root / "new").exists()) == ("checked", False)
        done = await ask(client, "apply_patch", **patch("*** Add File: new/deep/er.txt", "+x"))
        body = await refused(client, "apply_patch", **patch("*** Add File: out/x.txt", "+x"))
    assert (done["status"], (root / "new/deep/er.txt").read_text()) == ("applied", "x\n")
    assert body["code"] == "SYMLINK_REJECTED"
    assert list(tmp_path.iterdir()) == []
    (root / "out").unlink()
