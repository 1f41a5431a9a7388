"""What went wrong in other patch tools, told as cases: the files, the patch, and what must come of it."""

from pathlib import Path

import pytest

from codespace_es.vocabulary.errors import CodespaceError, ErrorCode
from support.patching import apply, plan, write
from support.real_tree import snapshot

Files = dict[str, bytes | str]


@pytest.mark.parametrize(("files", "lines", "after"), [
    pytest.param({"a.ini": "alpha\r\nbeta\r\ngamma\r\n"}, ["Update a.ini", "@@", "-beta", "+BETA"],
                 {"a.ini": b"alpha\r\nBETA\r\ngamma\r\n"}, id="crlf stays crlf"),
    pytest.param({"w.bat": "a\r\nb\r\nc\r\nd\r\n"},
                 ["Update w.bat", "@@", " a", " b", "+new one", "+new two", " c", " d"],
                 {"w.bat": b"a\r\nb\r\nnew one\r\nnew two\r\nc\r\nd\r\n"}, id="context keeps its bytes"),
    pytest.param({"b.txt": "top\n\nmiddle\nend\n"}, ["Update b.txt", "@@", " top", "", "-middle", "+MIDDLE", " end"],
                 {"b.txt": b"top\n\nMIDDLE\nend\n"}, id="empty line as blank context"),
    pytest.param({"b.txt": "top\n\nmiddle\nend\n"}, ["Update b.txt", "@@", " top", " ", "-middle", "+MIDDLE", " end"],
                 {"b.txt": b"top\n\nMIDDLE\nend\n"}, id="one blank as blank context"),
    pytest.param({"nb.md": "blue\u00a0car\nred\n"}, ["Update nb.md", "@@", " blue car", "-red", "+RED"],
                 {"nb.md": "blue\u00a0car\nRED\n".encode()}, id="a no-break blank in context stays"),
    pytest.param({"sep.txt": "a\u2028b\u2029c\nnext\n"}, ["Update sep.txt", "@@", "-a\u2028b\u2029c", "+x\u2028y"],
                 {"sep.txt": "x\u2028y\nnext\n".encode()}, id="line separators split nothing"),
    pytest.param({"app/[id]/(grp)/page.ts": "x\n", "app/i/(grp)/page.ts": "x\n"},
                 ["Update app/[id]/(grp)/page.ts", "@@", "-x", "+y"],
                 {"app/[id]/(grp)/page.ts": b"y\n", "app/i/(grp)/page.ts": b"x\n"}, id="paths are literal"),
    pytest.param({"notes.txt": "body\n"}, ["Update notes.txt", "Move to Notes.txt", "@@", "-body", "+body2"],
                 {"Notes.txt": b"body2\n"}, id="a move that changes case alone"),
    pytest.param({"e": ""}, ["Delete e", "Add f"], {"f": b""}, id="empty files come and go"),
])
def test_the_files_are_right_afterwards(tmp_path: Path, files: Files, lines: list[str], after: Files) -> None:
    write(tmp_path, files)
    apply(tmp_path, *lines)
    assert {path: entry[0] for path, entry in snapshot(tmp_path).items()} == after


@pytest.mark.parametrize(("lines", "code"), [
    pytest.param(["Delete f1", "Update f2", "@@", "-outdated", "+new"], ErrorCode.INVALID_PATCH, id="a late failure"),
    pytest.param(["Update f1", "@@", "-keep", "+K", "Update folder", "@@", "-q"], ErrorCode.SPECIAL_FILE_REJECTED,
                 id="a directory"),
    pytest.param(["Add f1", "+new"], ErrorCode.ADD_FILE_EXISTS, id="an add over a file"),
    pytest.param(["Update f1", "Move to f1", "@@", "-keep", "+K"], ErrorCode.MOVE_DESTINATION_EXISTS,
                 id="a move onto itself"),
    pytest.param(["Update f1", "Move to alias", "@@", "-keep", "+K"], ErrorCode.MOVE_DESTINATION_EXISTS,
                 id="a move onto another name of the file"),
    pytest.param(["Update link", "@@", "-keep", "+owned"], ErrorCode.SYMLINK_REJECTED, id="a link"),
    pytest.param(["Update ../root-secret/key", "@@", "-k", "+l"], ErrorCode.PATH_ESCAPE, id="a sibling directory"),
    pytest.param(["Update sj.ini", "@@", " title=\u30c6", "+\u65e5\u672c"], ErrorCode.INVALID_PATCH,
                 id="another encoding"),
])
def test_the_whole_patch_is_refused(tmp_path: Path, lines: list[str], code: ErrorCode) -> None:
    write(tmp_path, {"f1": "keep\n", "f2": "current\n", "folder/x": "", "sj.ini": b"title=\203e\203X\203g\nend\n"})
    (tmp_path / "alias").hardlink_to(tmp_path / "f1")
    (tmp_path / "link").symlink_to("f1")
    with pytest.raises(CodespaceError) as refused:
        plan(tmp_path, *lines)
    assert refused.value.code is code


def test_a_private_script_stays_private(tmp_path: Path) -> None:
    write(tmp_path, {"key.sh": "#!/bin/sh\n: secret\n"})
    (tmp_path / "key.sh").chmod(0o600)
    made = plan(tmp_path, "Update key.sh", "@@", "-: secret", "+: secret2")
    assert made.files[0].mode == 0o600
