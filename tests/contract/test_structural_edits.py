"""`ast_edit` and `resolve` over real files: what was staged is what is written, byte for byte, or nothing is."""

import os
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codespace_es.command_handlers.reporting import ReportOperation
from codespace_es.command_handlers.resolve_request import ResolveAction
from codespace_es.command_handlers.reverting import RevertOperation
from codespace_es.command_handlers.rewriting import EditCode
from codespace_es.ports.structural_search import RewriteFindings
from support.holds import ask, audit
from support.server import Server

pytestmark = pytest.mark.anyio

CODE = {
    "a.py": ("\ufeffif x:\r\n\told('é🎉', 1)\r\n\ty = 2\r\n", "old($$$A)", "new(\n\t$$$A,\n)",
             "\ufeffif x:\r\n\tnew(\r\n\t\t'é🎉', 1,\r\n\t)\r\n\ty = 2\r\n"),
    "a.ts": ("function f(): void {\n  old(`ü ${1}`);\n}", "old($A)", "await fresh($A)",
             "function f(): void {\n  await fresh(`ü ${1}`);\n}"),
    "a.go": ("package p\n\nfunc f() {\n\told(\"ß\")\n}\n", "old($A)", "fresh($A)",
             "package p\n\nfunc f() {\n\tfresh(\"ß\")\n}\n"),
    "a.rs": ("fn f() {\r\n    let x = old(\"é\");\r\n}\r\n", "old($A)", "fresh($A)?",
             "fn f() {\r\n    let x = fresh(\"é\")?;\r\n}\r\n"),
    "A.java": ("class A {\n\tString f() { return Old.get(\"日本\"); }\n}\n", "Old.get($A)", "Fresh.get($A)",
               "class A {\n\tString f() { return Fresh.get(\"日本\"); }\n}\n"),
}
"""File -> before, pattern, replacement, after."""


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("ws")


@pytest.fixture(scope="module")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("server")


@pytest.fixture(scope="module")
async def server(scratch: Path, root: Path) -> AsyncIterator[Server]:
    """Serve with `kept.py` protected."""
    async with Server(scratch, {"demo": root}, protected_paths=("kept.py",)) as server:
        yield server


@pytest.fixture(autouse=True)
def _empty(root: Path) -> None:
    for path in root.iterdir():
        path.unlink()


async def preview(server: Server, pat: str, out: str, **more: Any) -> dict[str, Any]:
    command = {"workspace_id": "demo", "ops": [{"pat": pat, "out": out}], **more}
    return await ask(server, EditCode.model_validate(command))


async def resolve(server: Server, told: dict[str, Any], action: str = "apply") -> dict[str, Any]:
    return await ask(server, ResolveAction.model_validate({
        "action": action, "reason": "a test", "workspace_id": "demo", "id": told["action_id"],
    }))


@pytest.mark.parametrize("name", CODE)
async def test_code_of_each_language_is_rewritten_and_undone_byte_for_byte(server: Server, root: Path, name: str):
    before, pat, out, after = CODE[name]
    path = root / name
    path.write_bytes(before.encode())
    path.chmod(0o755)
    told = await preview(server, pat, out)
    assert (told["total_replacements"], told["parse_errors"]) == (1, [])
    assert path.read_bytes() == before.encode()
    applied = await resolve(server, told)
    assert (applied["outcome"], applied["label"]) == ("applied", "AST Edit: 1 replacement(s) in 1 file(s)")
    assert (path.read_bytes().decode(), path.stat().st_mode & 0o777) == (after, 0o755)
    status = await ask(server, ReportOperation(operation_id=applied["operation_id"]))
    assert (status["source"], status["status"]) == ("ast_edit", "applied")
    undone = await ask(server, RevertOperation(operation_id=applied["operation_id"]))
    assert undone["status"] == "applied"
    assert path.read_bytes() == before.encode()


async def test_a_discarded_preview_changes_nothing(server: Server, root: Path):
    (root / "a.py").write_text("f(1)\n")
    told = await preview(server, "f($A)", "g($A)")
    assert (await resolve(server, told, "discard"))["outcome"] == "discarded"
    assert (root / "a.py").read_text() == "f(1)\n"


async def test_of_two_previews_of_one_file_the_newer_makes_the_older_stale(server: Server, root: Path):
    (root / "a.py").write_text("f(1)\nh(2)\n")
    (root / "b.py").write_text("f(3)\n")
    older = await preview(server, "f($A)", "g($A)")
    newer = await preview(server, "h($A)", "i($A)")
    assert (await resolve(server, newer))["outcome"] == "applied"
    stale = await resolve(server, older)
    assert stale["code"] == "STALE_PREVIEW"
    assert stale["message"].startswith("Preview is stale: a.py has changed")
    assert ((root / "a.py").read_text(), (root / "b.py").read_text()) == ("f(1)\ni(2)\n", "f(3)\n")
    assert (await resolve(server, older))["code"] == "STALE_PREVIEW"


async def test_a_protected_file_among_the_matches_refuses_all(server: Server, root: Path):
    for name in ("a.py", "kept.py"):
        (root / name).write_text("f(1)\n")
    refused = await preview(server, "f($A)", "g($A)")
    assert (refused["code"], refused["detail"]["paths"]) == ("PATH_PROTECTED", ["kept.py"])
    assert (await preview(server, "f($A)", "g($A)", paths=["a.py"]))["files_touched"] == 1


async def test_a_file_with_several_names_is_replaced_and_that_is_told(server: Server, root: Path):
    (root / "a.py").write_text("f(1)\n")
    os.link(root / "a.py", root / "b.txt")
    applied = await resolve(server, await preview(server, "f($A)", "g($A)"))
    assert applied["outcome"] == "applied"
    assert ((root / "a.py").read_text(), (root / "b.txt").read_text()) == ("g(1)\n", "f(1)\n")


async def test_a_gate_lets_one_preview_wait_at_a_time(tmp_path: Path):
    root = tmp_path / "gated"
    root.mkdir()
    (root / "a.py").write_text("f(1)\n")
    async with Server(tmp_path, {"demo": root}, pending_bias="require") as server:
        told = await preview(server, "f($A)", "g($A)")
        assert (await preview(server, "f($A)", "h($A)"))["code"] == "PENDING_ACTION_UNRESOLVED"
        await resolve(server, told, "discard")
        again = await preview(server, "f($A)", "h($A)")
        assert (await resolve(server, again))["outcome"] == "applied"
    assert (root / "a.py").read_text() == "h(1)\n"


class Remembering:
    """The structural search of a server, which remembers what it found last."""

    def __init__(self, server: Server) -> None:
        self._real = server.world.structural
        self.found: RewriteFindings | None = None

    async def rewrite(self, *arguments: Any, **more: Any) -> RewriteFindings:
        self.found = await self._real.rewrite(*arguments, **more)
        return self.found


def patched(before: str, diff: str) -> str:
    """Return `before` as a unified diff changes it, read naively: hunk by hunk, line by line."""
    lines, made, position = before.split("\n"), [], 0
    for line in diff.split("\n")[:-1]:
        hunk = re.match(r"@@ -(\d+)", line)
        if hunk:
            start = int(hunk[1]) - 1
            made += lines[position:start]
            position = start
        elif line.startswith(" "):
            made.append(lines[position])
            position += 1
        elif line.startswith("-") and not line.startswith("--- "):
            position += 1
        elif line.startswith("+") and not line.startswith("+++ "):
            made.append(line[1:])
    return "\n".join(made + lines[position:])


LINES = st.sampled_from(["f(1)", "x = f('é🎉')", "if y:\n\tf(2,\n\t\t3)", "g(f(4))", "# f(5)", ""])
TEXTS = st.lists(LINES, max_size=6)
FILES = st.fixed_dictionaries({"a.py": TEXTS, "b.py": TEXTS, "c.py": TEXTS})


@settings(max_examples=20)
@given(
    contents=FILES, out=st.sampled_from(["new($$$A)", "new(\n\t$$$A,\n)", "$$$A", "f($$$A)"]),
    meddled_and_limit=st.tuples(st.sampled_from([None, "a.py", "b.py", "c.py"]), st.sampled_from([None, 1, 3])),
)
async def test_what_the_preview_showed_is_what_apply_wrote_or_nothing_was_written(
    server: Server, root: Path, contents: dict[str, list[str]], out: str,
    meddled_and_limit: tuple[str | None, int | None],
):
    meddled, limit = meddled_and_limit
    before = {name: "".join(f"{line}\n" for line in lines) for name, lines in contents.items()}
    for name, text in before.items():
        (root / name).write_text(text, newline="")
    remembering = Remembering(server)
    object.__setattr__(server.world, "structural", remembering)
    try:
        told = await preview(server, "f($$$A)", out, limit=limit)
    finally:
        object.__setattr__(server.world, "structural", remembering._real)
    assert remembering.found is not None
    staged = {file.path: file.after for file in remembering.found.files}
    for shown in told["files"]:
        assert patched(before[shown["path"]], shown["diff"]) == staged[shown["path"]].decode()
    assert "action_id" in told or not staged
    if not staged:
        return
    expected = {**{name: text.encode() for name, text in before.items()}}
    if meddled is not None:
        expected[meddled] += b"# somebody\n"
        (root / meddled).write_bytes(expected[meddled])
    answer = await resolve(server, told)
    if meddled in staged:
        assert answer["code"] == "STALE_PREVIEW"
    else:
        assert answer["outcome"] == "applied"
        expected.update(staged)
    assert {name: (root / name).read_bytes() for name in before} == expected


async def test_all_of_it_is_in_a_log_that_verifies(server: Server, scratch: Path):
    """Comes last: the module's server has lived through everything above."""
    assert audit(scratch).findings == ()
