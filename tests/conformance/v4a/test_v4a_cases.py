"""Every hand-written case of the format: the patch, and what the disk looks like afterwards."""

import base64
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from adapters.files.workspace_files import DirectoryFilesByRoot
from codespace_es.v4a.parser import parse_patch
from codespace_es.v4a.planner import plan_patch
from codespace_es.v4a.tree import PatchTree
from codespace_es.vocabulary.errors import CodespaceError
from codespace_es.vocabulary.limits import ERROR_EXCERPT_BYTES_MAX
from support.real_tree import RealTree, carry_out, snapshot


def open_files(root: Path) -> PatchTree:
    """Return the product's own files below `root`."""
    return DirectoryFilesByRoot().open(str(root))


CASES = json.loads((Path(__file__).parent / "cases.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("open_tree", [RealTree, open_files], ids=["plain", "descriptor-safe"])
@pytest.mark.parametrize("case", [pytest.param(case, id=case["id"]) for case in CASES])
def test_the_disk_is_as_the_case_says(
    case: dict[str, Any], open_tree: Callable[[Path], PatchTree], tmp_path: Path
) -> None:
    given, wanted = tmp_path / "given", tmp_path / "wanted"
    _build(given, case["input"], given)
    _build(wanted, case["after"], given)
    work = given / "work"

    try:
        plan = plan_patch(
            parse_patch(_named(case["patch"], given)), open_tree(work), matching="lenient", protected=lambda _: False
        )
    except CodespaceError as error:
        outcome = "rejected"
        detail = error.detail
    else:
        outcome, detail = "applied", {}
        carry_out(plan, work)

    assert len(json.dumps(detail)) <= ERROR_EXCERPT_BYTES_MAX
    assert (outcome, snapshot(given)) == (case["expect"], snapshot(wanted)), case["note"]


def _named(text: str, top: Path) -> str:
    return text.replace("{{CWD}}", str(top / "work")).replace("{{ROOT}}", str(top))


def _build(top: Path, files: dict[str, Any], named_top: Path) -> None:
    work = top / "work"
    work.mkdir(parents=True)
    for path, content in files.items():
        place = work / path
        if path.startswith("../"):
            place = top / path.removeprefix("../")
        place.parent.mkdir(parents=True, exist_ok=True)
        entry = content if isinstance(content, dict) else {"text": content}
        if "symlink" in entry:
            place.symlink_to(_named(entry["symlink"], named_top))
        elif "dir" in entry:
            place.mkdir(exist_ok=True)
        else:
            place.write_bytes(base64.b64decode(entry["b64"]) if "b64" in entry else entry["text"].encode())
            place.chmod(int(entry.get("mode", "644"), 8))
