"""`ast_grep` and `ast_edit` through a real client and a real server."""

from collections.abc import AsyncIterator
from pathlib import Path

import anyio
import pytest
from mcp import Client

from support.stdio_client import SECONDS_MAX, ask, connected, product, refused

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
def looked_at(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("look")


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("whole")


@pytest.fixture(scope="module")
async def client(
    tmp_path_factory: pytest.TempPathFactory, whole: Path, looked_at: Path
) -> AsyncIterator[Client]:
    scratch = tmp_path_factory.mktemp("server")
    command = product(scratch, f"demo={whole}:workspace-write", f"look={looked_at}:read-only")
    async with connected(command, scratch) as connection:
        yield connection


@pytest.fixture
def root(whole: Path, request: pytest.FixtureRequest) -> Path:
    """A folder of the workspace that is this test's own."""
    root = whole / request.node.name
    root.mkdir()
    return root


def warnings_of(answer: dict) -> list[str]:
    return [each["kind"] for each in answer.get("warnings", ())]


async def test_code_is_found_page_by_page(client: Client, root: Path):
    (root / "a.py").write_text("f(1)\nf('é', 2)\n")
    (root / "b.ts").write_text("f(3);\n")
    with anyio.fail_after(SECONDS_MAX):
        first = await ask(client, "ast_grep", workspace_id="demo", pat="f($$$ARGS)", paths=[root.name], limit=2)
        rest = await ask(
            client, "ast_grep", workspace_id="demo", pat="f($$$ARGS)", paths=[root.name], offset=first["next_offset"]
        )
    assert first["matches"][1] == {
        "path": f"{root.name}/a.py", "line": 2, "column": 1, "end_line": 2, "end_column": 10, "text": "f('é', 2)",
        "captures": {"ARGS": "'é', 2"},
    }
    assert (first["truncated"], first["next_offset"], first["files_searched"]) == (True, 2, 2)
    assert [each["text"] for each in rest["matches"]] == ["f(3)"]
    assert (rest["truncated"], rest["incomplete"]) == (False, False)
    assert "next_offset" not in rest


async def test_who_finds_nothing_is_told_why(client: Client, root: Path):
    (root / "a.go").write_text('package p\n\nfunc f() { fmt.Println("x") }\n')
    (root / "b.txt").write_text("nothing\n")
    where = {"workspace_id": "demo", "paths": [root.name]}
    with anyio.fail_after(SECONDS_MAX):
        half = await ask(client, "ast_grep", pat="fmt.Println(", **where)
        other = await ask(client, "ast_grep", pat="fmt.Println($A)", **where)
        right = await ask(
            client, "ast_grep", pat="package p\nfunc f() { fmt.Println($A) }", selector="call_expression", **where
        )
        nowhere = await ask(client, "ast_grep", pat="f()", workspace_id="demo", paths=["no/such/*.py"])
        unknown = await ask(client, "ast_grep", pat="f()", workspace_id="demo", paths=[f"{root.name}/b.txt"])
    assert half["warnings"][0]["kind"] == "no_match"
    assert "isn't whole code" in half["warnings"][0]["message"]
    assert "type_conversion_expression in go" in other["warnings"][0]["message"]
    assert [each["captures"] for each in right["matches"]] == [{"A": '"x"'}]
    assert "warnings" not in right
    assert (nowhere["files_searched"], warnings_of(nowhere)) == (0, ["no_files"])
    assert "another language" in unknown["warnings"][0]["message"]


async def test_bad_arguments_are_refused_by_name(client: Client):
    with anyio.fail_after(SECONDS_MAX):
        for arguments, code, field in (
            ({"pat": "f($$A)"}, "INVALID_ARGUMENT", "pat"),
            ({"pat": ""}, "INVALID_ARGUMENT", "pat"),
            ({"pat": "x" * 20_000}, "INVALID_ARGUMENT", "pat"),
            ({"pat": "f()", "lang": "cobol"}, "UNSUPPORTED_LANGUAGE", "lang"),
            ({"pat": "f()", "lang": "py", "selector": "nope"}, "INVALID_ARGUMENT", "selector"),
            ({"pat": "f()", "paths": ["["]}, "INVALID_ARGUMENT", "paths"),
            ({"pat": "f()", "paths": ["a"] * 51}, "INVALID_ARGUMENT", "paths"),
            ({"pat": "f()", "paths": "a"}, "INVALID_ARGUMENT", "paths"),
            ({"pat": "f()", "limit": 0}, "OUTPUT_LIMIT", "limit"),
        ):
            found = await refused(client, "ast_grep", workspace_id="demo", **arguments)
            assert (found["code"], found["detail"]["field"]) == (code, field), arguments
        for ops, field in (
            ([], "ops"), ([{"pat": "f()"}], "ops.0.out"), ([{"pat": "f()", "out": "$$$"}], "out"),
            ([{"pat": "f()", "out": "x" * 20_000}], "ops.0.out"),
        ):
            found = await refused(client, "ast_edit", workspace_id="demo", ops=ops)
            assert (found["code"], found["detail"]["field"]) == ("INVALID_ARGUMENT", field), ops


async def test_a_preview_says_first_that_nothing_is_changed_and_shows_each_file(client: Client, root: Path):
    before = "\ufeffif x:\r\n\tf(1)\r\n"
    (root / "a.py").write_bytes(before.encode())
    (root / "b.py").write_bytes(b"f('" + b"long" * 50 + b"')\n")
    (root / "c.py").write_bytes(b"g(1)\n")
    with anyio.fail_after(SECONDS_MAX):
        result = await client.call_tool("ast_edit", {
            "workspace_id": "demo", "ops": [{"pat": "f($A)", "out": "g(\n\t$A,\n)"}], "paths": [root.name],
        })
    told = result.structured_content or {}
    assert not result.is_error, told
    assert result.content[0].text.startswith('{"message":"Nothing is changed yet. Call resolve')
    assert told["action_id"] in told["message"]
    assert (told["label"], told["applied"]) == ("AST Edit: 2 replacement(s) in 2 file(s)", False)
    assert (told["total_replacements"], told["files_touched"], told["files_searched"]) == (2, 2, 3)
    assert (told["limit_reached"], told["parse_errors"]) == (False, [])
    assert [(each["path"], each["count"]) for each in told["files"]] == [
        (f"{root.name}/a.py", 1), (f"{root.name}/b.py", 1),
    ]
    assert "-\tf(1)\n+\tg(\n+\t\t1,\n+\t)\n" in told["files"][0]["diff"]
    assert max(map(len, told["files"][1]["diff"].split("\n"))) == 120
    assert (root / "a.py").read_bytes() == before.encode()


async def test_what_matches_nothing_or_changes_nothing_is_not_staged(client: Client, root: Path):
    (root / "a.py").write_text("f(1)\n")
    where = {"workspace_id": "demo", "paths": [root.name]}
    with anyio.fail_after(SECONDS_MAX):
        nothing = await ask(client, "ast_edit", ops=[{"pat": "nope($A)", "out": "f($A)"}], **where)
        same = await ask(client, "ast_edit", ops=[{"pat": "f($A)", "out": "f($A)"}], **where)
    for told, kind in ((nothing, "no_match"), (same, "no_change")):
        assert told["message"] == "Nothing is changed, and nothing is staged."
        assert warnings_of(told) == [kind]
        assert (told["total_replacements"], told["files"]) == (0, [])
        assert "action_id" not in told


async def test_what_deserves_a_look_is_told_with_the_preview(client: Client, root: Path):
    (root / "a.py").write_text("f(1)\nf(2)\n")
    with anyio.fail_after(SECONDS_MAX):
        told = await ask(
            client, "ast_edit", workspace_id="demo", paths=[root.name], limit=1,
            ops=[{"pat": "f($A)", "out": "g($NONE"}],
        )
    assert warnings_of(told) == ["unbound_metavariable", "parse_errors", "limit_reached"]
    assert told["parse_errors"] == [{"path": f"{root.name}/a.py", "line": 1}]
    assert (told["limit_reached"], told["total_replacements"]) == (True, 1)


async def test_what_could_never_be_applied_is_not_staged(client: Client, root: Path, looked_at: Path):
    (root / "a.py").write_text("f(f(1))\n")
    (looked_at / "a.py").write_text("f(1)\n")
    ops = [{"pat": "f($A)", "out": "g($A)"}]
    with anyio.fail_after(SECONDS_MAX):
        overlap = await refused(client, "ast_edit", workspace_id="demo", ops=ops, paths=[root.name])
        read_only = await refused(client, "ast_edit", workspace_id="look", ops=ops)
        found = await ask(client, "ast_grep", workspace_id="look", pat="f($A)")
    assert (overlap["code"], overlap["detail"]["lines"]) == ("INVALID_ARGUMENT", [1, 1])
    assert overlap["message"].startswith("Overlapping replacements")
    assert read_only["code"] == "UNAUTHORIZED"
    assert len(found["matches"]) == 1
