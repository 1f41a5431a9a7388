"""Patches that somebody has garbled, through the door and a real store: a typed outcome, and all files or none."""

import re
from pathlib import Path

import anyio
from hypothesis import given
from hypothesis import strategies as st

from adapters.log.reader import LogReader
from codespace_es.command_handlers.patching import ApplyPatch
from codespace_es.event_catalogue import CATALOGUE
from codespace_es.vocabulary.errors import CodespaceError, ErrorCode
from codespace_es.vocabulary.patch_result import PatchResult
from replay.workspace_check import check_workspace
from support.server import Server

BEFORE = {
    "a.txt": b"one\ntwo\nthree\n", "b.txt": b"first\r\nsecond\r\n", "c/d.txt": b"\xef\xbb\xbfmark\nno newline at end",
    "binary": b"\0\xff",
}
VALID = """*** Begin Patch
*** Update File: a.txt
@@ one
-two
+TWO
*** Update File: b.txt
*** Move to: e/f.txt
@@
-first
+FIRST
*** Delete File: c/d.txt
*** Add File: g.txt
+new
+lines
*** End Patch
"""
PIECES = (
    "*** Begin Patch\n", "*** End Patch\n", "*** Update File: a.txt\n", "*** Add File: a.txt/x\n",
    "*** Add File: ../x\n", "*** Delete File: a.txt\n", "*** Move to: g.txt\n", "*** Move to: a.txt\n",
    "*** Update File: binary\n", "*** End of File\n", "@@\n", "@@ nothing\n", "-one\n", "+\n", " \n", "\n", "-\n",
    "+\0\n", "\r", "\u2028", "\ufeff", "```\n", "\U0001f600", "*** Environment ID: x\n", "*** Add File: .git/x\n",
)


@st.composite
def garbled(draw: st.DrawFn) -> str:
    """A valid patch after a few cuts, swaps, doublings and insertions, by lines and by characters."""
    text = VALID
    for _ in range(draw(st.integers(1, 5))):
        lines = text.splitlines(keepends=True) or [""]
        at = draw(st.integers(0, len(lines) - 1))
        match draw(st.sampled_from(("cut line", "double", "swap", "insert", "cut", "flip", "end"))):
            case "cut line":
                del lines[at]
            case "double":
                lines.insert(at, lines[at])
            case "swap":
                other = draw(st.integers(0, len(lines) - 1))
                lines[at], lines[other] = lines[other], lines[at]
            case "insert":
                lines.insert(at, draw(st.sampled_from(PIECES)))
            case "cut":
                lines[at] = lines[at][: draw(st.integers(0, len(lines[at])))]
            case "flip":
                lines[at] = draw(st.characters(exclude_categories=["Cs"])) + lines[at][1:]
            case "end":
                lines = lines[:at]
        text = "".join(lines)
    return text


def lay_out(root: Path) -> None:
    for name, content in BEFORE.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(content)


def tree(root: Path) -> dict[str, bytes | None]:
    return {str(each.relative_to(root)): each.read_bytes() if each.is_file() else None for each in root.rglob("*")}


@given(text=garbled())
def test_a_garbled_patch_does_what_it_says_or_nothing(tmp_path_factory, text: str) -> None:
    scratch = tmp_path_factory.mktemp("garbled")
    root = scratch / "root"
    root.mkdir()
    lay_out(root)
    before = tree(root)

    async def run() -> tuple[PatchResult | CodespaceError, PatchResult | CodespaceError]:
        async with Server(scratch, {"demo": root}) as server:
            outcomes = []
            for is_preview in (True, False):
                try:
                    outcomes.append(await server.handle(ApplyPatch(
                        workspace_id="demo", patch=text, check_only=is_preview)))
                except CodespaceError as refusal:
                    outcomes.append(refusal)
                if is_preview:
                    assert tree(root) == before
            return outcomes[0], outcomes[1]

    preview, outcome = anyio.run(run)
    if isinstance(outcome, CodespaceError):
        assert outcome.code not in {ErrorCode.INTERNAL, ErrorCode.STORE_UNAVAILABLE, ErrorCode.WORKSPACE_BUSY}
        assert isinstance(preview, CodespaceError)
        assert (preview.code, preview.message) == (outcome.code, outcome.message)
        assert len(outcome.message) < 1_000
        assert tree(root) == before
    else:
        assert (preview.status, outcome.status) == ("checked", "applied")
        assert [change.after_version for change in preview.changes] == [
            change.after_version for change in outcome.changes
        ]
    assert not [name for name in tree(root) if re.search(r"\.tmp$", name)]
    with LogReader(scratch / "data" / "codespace.db", CATALOGUE) as reader:
        assert check_workspace(reader, root).problems == ()
