"""The structural search port over real workers and real files."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapters.files.workspace_files import DirectoryFiles
from adapters.structural.crew import Crew, JobLeftError
from adapters.structural.finding import find_matches
from adapters.structural.remaking import rewrite_files
from adapters.structural.searching import CrewStructuralSearch, open_structural_search
from adapters.structural.worker_link import WorkerLink, WorkerUnavailableError
from codespace_es.ports.structural_search import Rewriting, StructuralScope
from codespace_es.vocabulary.errors import CodespaceError, ErrorCode

pytestmark = pytest.mark.anyio

SECONDS_MAX = 60


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
def crew() -> Iterator[Crew]:
    crew = Crew(size=2, file_seconds_max=10, seconds_max=60)
    yield crew
    crew.close()


@pytest.fixture
async def search(crew: Crew) -> CrewStructuralSearch:
    return CrewStructuralSearch(crew, files_changed_max=3)


def tree(root: Path, **files: str | bytes) -> DirectoryFiles:
    """Write files, `__` in their names standing for `/` and the last `_` for the dot of the ending."""
    for name, content in files.items():
        stem, _, ending = name.replace("__", "/").rpartition("_")
        path = root / f"{stem}.{ending}"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    return DirectoryFiles(str(root))


ANYWHERE = StructuralScope()


async def test_matches_come_by_path_and_place_with_what_they_captured(search, tmp_path):
    files = tree(tmp_path, b_py="f(1)\n  \nx = f('é🎉', y)\n", a__a_ts="f(2);\n", c_css="a { color: red }\n")
    with anyio.fail_after(SECONDS_MAX):
        found = await search.find(files, ANYWHERE, "f($$$ARGS)", limit=10, offset=0)
    assert [(each.path, each.line, each.column, each.end_column, each.text) for each in found.matches] == [
        ("a/a.ts", 1, 1, 5, "f(2)"), ("b.py", 1, 1, 5, "f(1)"), ("b.py", 3, 5, 15, "f('é🎉', y)"),
    ]
    assert found.matches[2].captures == {"ARGS": "'é🎉', y"}
    assert (found.is_truncated, found.coverage.files_searched) == (False, 3)


async def test_of_matches_within_each_other_the_outer_comes_first(search, tmp_path):
    files = tree(tmp_path, a_py="f(f(1), 2)\n")
    found = await search.find(files, ANYWHERE, "$A", limit=3, offset=1)
    assert [each.text for each in found.matches] == ["f(f(1), 2)", "f(f(1), 2)", "f"]


async def test_every_match_is_on_exactly_one_page_whatever_its_size(search, tmp_path):
    files = tree(tmp_path, **{f"f{number}_py": "f(1)\n" * (number * 7 % 13) for number in range(9)})
    whole = (await search.find(files, ANYWHERE, "f($A)", limit=1000, offset=0)).matches
    assert len(whole) == sum(number * 7 % 13 for number in range(9))
    for limit in (1, 4, 50):
        pages = []
        while True:
            found = await search.find(files, ANYWHERE, "f($A)", limit=limit, offset=len(pages))
            pages += found.matches
            if not found.is_truncated:
                break
            assert len(found.matches) == limit
        assert pages == list(whole)


async def test_what_git_ignores_links_and_files_of_other_languages_are_left_out(search, tmp_path):
    files = tree(
        tmp_path, a_py="f(1)\n", ignored__b_py="f(1)\n", _git__c_py="f(1)\n", d_txt="f(1)\n", _gitignore="ignored/\n",
    )
    os.rename(tmp_path / "/_git".strip("/"), tmp_path / ".git")
    (tmp_path / ".gitignore").write_text("ignored/\n")
    os.symlink("a.py", tmp_path / "link.py")
    found = await search.find(files, ANYWHERE, "f($A)", limit=10, offset=0)
    assert [each.path for each in found.matches] == ["a.py"]
    assert (found.coverage.files_searched, found.coverage.ignored_count) == (1, 1)
    assert found.coverage.unknown_count > 0


@pytest.mark.parametrize(("globs", "language", "paths"), [
    ((), None, ["a.py", "src/b.py", "src/c.h", "src/deep/d.py"]),
    (("src",), None, ["src/b.py", "src/c.h", "src/deep/d.py"]),
    (("src/",), "python", ["src/b.py", "src/deep/d.py"]),
    (("src/*.py", "a.py"), None, ["a.py", "src/b.py"]),
    (("*.tpl",), "python", ["src/e.tpl"]),
    (("src/e.tpl",), "python", ["src/e.tpl"]),
    (("*.{h,tpl}",), "cpp", ["src/c.h", "src/e.tpl"]),
    (("src/**",), "cpp", []),
    ((".",), "c", ["src/c.h"]),
    (("*.tpl",), None, []),
])
async def test_a_scope_is_what_globs_and_language_say(search, tmp_path, globs, language, paths):
    files = tree(tmp_path, a_py="f(1)", src__b_py="f(1)", src__c_h="int x = f(1);", src__deep__d_py="f(1)",
                 src__e_tpl="f(1)")
    scope = StructuralScope(globs, language)
    found = await search.find(files, scope, "f(1)", limit=10, offset=0)
    assert [each.path for each in found.matches] == paths
    assert found.coverage.files_searched == len(paths)


async def test_what_can_not_be_looked_at_is_listed_with_why(search, tmp_path):
    files = tree(tmp_path, a_py="f(1)\n", bin_py=b"f(1)\0", latin_py=b"f(1) # \xe9\n", large_py="f(1)\n" * 1_000_000)
    found = await search.find(files, ANYWHERE, "f($A)", limit=10, offset=0)
    assert [each.path for each in found.matches] == ["a.py"]
    assert {each.path: each.reason.split()[-1] for each in found.coverage.skipped} == {
        "bin.py": "binary", "latin.py": "UTF-8", "large.py": "bytes",
    }


@pytest.mark.parametrize(("scope", "pattern", "refused"), [
    (StructuralScope(language="cobol"), "f()", ("lang", "Unsupported language 'cobol'")),
    (ANYWHERE, "", ("pat", "empty")),
    (ANYWHERE, "f($$A)", ("pat", "$$$A")),
    (ANYWHERE, "a\nb", ("pat", "several nodes")),
    (StructuralScope(language="go"), "$$$A", ("pat", "can't be all of it")),
    (StructuralScope(selector="nope"), "f()", ("selector", "kind `nope`")),
    (StructuralScope(("[",)), "f()", ("paths", "[")),
])
async def test_what_can_not_be_understood_is_refused(search, tmp_path, scope, pattern, refused):
    field, words = refused
    code = ErrorCode.UNSUPPORTED_LANGUAGE if field == "lang" else ErrorCode.INVALID_ARGUMENT
    files = tree(tmp_path, a_py="f(1)\n")
    for job in (
        search.find(files, scope, pattern, limit=1, offset=0),
        search.rewrite(files, scope, [Rewriting(pattern, "g()")], limit=None),
    ):
        with pytest.raises(CodespaceError) as refusal:
            await job
        assert (refusal.value.code, refusal.value.detail["field"]) == (code, field)
        assert words in refusal.value.message


async def test_a_pattern_that_one_language_can_not_use_is_looked_for_in_the_others(search, tmp_path):
    files = tree(tmp_path, a_py="f(1)\n", b_json='{"a": 1}\n')
    found = await search.find(files, ANYWHERE, "f(1) if x else y", limit=1, offset=0)
    faults = {each.language: each.fault for each in found.coverage.readings}
    assert faults["python"] is None
    assert "several nodes" in (faults["json"] or "")
    assert found.coverage.files_searched == 1


async def test_a_half_written_pattern_says_that_it_is_no_whole_code(search, tmp_path):
    files = tree(tmp_path, a_py="print(1)\n")
    found = await search.find(files, ANYWHERE, "print(", limit=1, offset=0)
    assert not found.matches
    assert [each.is_broken for each in found.coverage.readings] == [True]


async def test_a_rewrite_says_what_would_be_and_writes_nothing(search, tmp_path):
    before = "\ufefff(1)\r\nx = 'é'\r\nf(2)\r\n".encode()
    files = tree(tmp_path, a_py=before, b_py="g(1)\n", c_go="package p\n")
    found = await search.rewrite(files, ANYWHERE, [Rewriting("f($A)", "g($A, $NONE)")], limit=None)
    (file,) = found.files
    assert (file.path, file.before.content, file.replacement_count) == ("a.py", before, 2)
    assert file.after == "\ufeffg(1, )\r\nx = 'é'\r\ng(2, )\r\n".encode()
    assert (found.match_count, found.is_limit_reached, found.unbound) == (2, False, ("$NONE",))
    assert (tmp_path / "a.py").read_bytes() == before


@pytest.mark.parametrize(("limit", "counts", "is_reached"), [
    (None, {"a.py": 2, "b.py": 2, "c.py": 2}, True),
    (1, {"a.py": 1}, True), (2, {"a.py": 2}, True), (3, {"a.py": 2, "b.py": 1}, True),
    (7, {"a.py": 2, "b.py": 2, "c.py": 2}, True),
])
async def test_a_limit_is_of_replacements_and_there_is_one_of_files(search, tmp_path, limit, counts, is_reached):
    files = tree(tmp_path, a_py="f(1)\nf(2)\n", b_py="f(1)\nf(2)\n", c_py="f(1)\nf(2)\n", d_py="f(1)\nf(2)\n")
    found = await search.rewrite(files, ANYWHERE, [Rewriting("f($A)", "g($A)")], limit=limit)
    assert {each.path: each.replacement_count for each in found.files} == counts
    assert found.is_limit_reached is is_reached


async def test_a_limit_that_is_met_exactly_is_not_passed(search, tmp_path):
    files = tree(tmp_path, a_py="f(1)\nf(2)\n", b_py="g(1)\n")
    found = await search.rewrite(files, ANYWHERE, [Rewriting("f($A)", "g($A)")], limit=2)
    assert found.is_limit_reached is False


async def test_overlapping_replacements_are_refused_with_their_place(search, tmp_path):
    files = tree(tmp_path, a_py="f(1)\n", b_py="x\nf(\n  f(1))\n")
    with pytest.raises(CodespaceError, match=r"Overlapping replacements in b\.py, at lines 2 and 3") as refusal:
        await search.rewrite(files, ANYWHERE, [Rewriting("f($A)", "g($A)")], limit=None)
    assert refusal.value.code is ErrorCode.INVALID_ARGUMENT
    assert (await search.rewrite(files, ANYWHERE, [Rewriting("f($A)", "g($A)")], limit=2)).files[1].after == (
        b"x\ng(f(1))\n"
    )


async def test_a_worker_that_is_killed_costs_nothing_but_time(search, crew, tmp_path):
    files = tree(tmp_path, **{f"f{number:03}_py": "f(1)\n" for number in range(60)})
    assert len((await search.find(files, ANYWHERE, "f($A)", limit=100, offset=0)).matches) == 60
    for pid in crew.pids:
        os.kill(pid, signal.SIGKILL)
    found = await search.find(files, ANYWHERE, "f($A)", limit=100, offset=0)
    assert (len(found.matches), found.coverage.skipped) == (60, ())


def test_a_worker_that_is_killed_in_the_middle_is_replaced_and_its_file_read_again(tmp_path):
    files = tree(tmp_path, **{f"f{number:03}_py": "f(1)\n" for number in range(80)})
    crew = Crew(size=1, file_seconds_max=10, seconds_max=60)
    reads = 0

    class KillingFiles(DirectoryFiles):
        def read_image(self, path, *, bytes_max):
            nonlocal reads
            reads += 1
            if reads == 30:
                os.kill(crew.pids[0], signal.SIGKILL)
            return super().read_image(path, bytes_max=bytes_max)

    try:
        found = find_matches(
            crew, KillingFiles(str(tmp_path)), ANYWHERE, "f($A)", limit=100, offset=0, is_left=lambda: False
        )
        assert (len(found.matches), found.coverage.skipped) == (80, ())
        assert files.find(None).paths
    finally:
        crew.close()


@pytest.mark.parametrize("deaths", [1, 3, 4])
def test_a_worker_that_is_killed_before_its_first_word_is_replaced_a_few_times(tmp_path, monkeypatch, deaths):
    files = tree(tmp_path, a_py="f(1)\n")
    crew = Crew(size=1, file_seconds_max=10, seconds_max=60)
    started = 0

    class Stillborn(WorkerLink):
        def __init__(self, **more: Any) -> None:
            nonlocal started
            super().__init__(**more)
            started += 1
            if started <= deaths:
                os.kill(self.pid, signal.SIGKILL)

    monkeypatch.setattr("adapters.structural.crew.WorkerLink", Stillborn)
    try:
        if deaths > 3:
            with pytest.raises(WorkerUnavailableError):
                find_matches(crew, files, ANYWHERE, "f($A)", limit=1, offset=0, is_left=lambda: False)
            return
        found = find_matches(crew, files, ANYWHERE, "f($A)", limit=1, offset=0, is_left=lambda: False)
        assert (len(found.matches), found.coverage.skipped, started) == (1, (), deaths + 1)
    finally:
        crew.close()


async def test_workers_that_never_get_to_their_first_word_are_told_of_and_tried_again(tmp_path, monkeypatch):
    files = tree(tmp_path, a_py="f(1)\n")

    class Stillborn(WorkerLink):
        def __init__(self, **more: Any) -> None:
            super().__init__(**more)
            os.kill(self.pid, signal.SIGKILL)

    async with open_structural_search(files_changed_max=10) as search:
        with monkeypatch.context() as dying:
            dying.setattr("adapters.structural.crew.WorkerLink", Stillborn)
            for act in (
                lambda: search.find(files, ANYWHERE, "f($A)", limit=1, offset=0),
                lambda: search.rewrite(files, ANYWHERE, [Rewriting("f($A)", "g($A)")], limit=None),
            ):
                with pytest.raises(CodespaceError, match="call again later, or use search") as caught:
                    await act()
                assert caught.value.code is ErrorCode.TOOL_FAILED
        assert len((await search.find(files, ANYWHERE, "f($A)", limit=1, offset=0)).matches) == 1


def test_a_file_that_the_workers_die_of_is_skipped_and_the_others_are_read(tmp_path):
    deep = "(" * 200_000 + "f(1)" + ")" * 200_000
    files = tree(tmp_path, a_py="f(1)\n", b_js=deep, c_py="f(1)\n")
    crew = Crew(size=1, file_seconds_max=10, seconds_max=60)
    try:
        found = find_matches(crew, files, ANYWHERE, "f($A)", limit=10, offset=0, is_left=lambda: False)
        assert [each.path for each in found.matches if each.path.endswith("py")] == ["a.py", "c.py"]
        assert "b.js" in {each.path for each in (*found.coverage.skipped, *found.matches)}
    finally:
        crew.close()


def test_a_file_that_takes_too_long_is_skipped_and_the_others_are_read(tmp_path):
    files = tree(tmp_path, a_py="f(1)\n", b_py="x = [f(1)]\n" * 300_000, c_py="f(1)\n")
    crew = Crew(size=1, file_seconds_max=0.3, seconds_max=60)
    try:
        found = find_matches(crew, files, ANYWHERE, "f($A)", limit=10, offset=0, is_left=lambda: False)
        assert [each.path for each in found.matches] == ["a.py", "c.py"]
        assert [(each.path, "too" in each.reason or "processor time" in each.reason) for each in
                found.coverage.skipped] == [("b.py", True)]
    finally:
        crew.close()


def test_a_worker_that_hangs_is_given_up(tmp_path):
    """By a clock that runs only once the worker is stopped, a second at each look."""
    files = tree(tmp_path, a_py="f(1)\n")
    now, step = 0, 0

    def clock() -> float:
        nonlocal now
        now += step
        return now

    crew = Crew(size=1, file_seconds_max=5, seconds_max=10_000, clock=clock)

    class StoppingFiles(DirectoryFiles):
        def read_image(self, path, *, bytes_max):
            nonlocal step
            os.kill(crew.pids[0], signal.SIGSTOP)
            step = 1
            return super().read_image(path, bytes_max=bytes_max)

    try:
        found = find_matches(
            crew, StoppingFiles(str(tmp_path)), ANYWHERE, "f($A)", limit=10, offset=0, is_left=lambda: False
        )
        step = 0
        assert [each.path for each in found.coverage.skipped] == ["a.py"]
        assert len(find_matches(crew, files, ANYWHERE, "f($A)", limit=9, offset=0, is_left=lambda: False).matches) == 1
    finally:
        crew.close()


def test_a_search_out_of_time_says_so_and_a_rewrite_is_refused(tmp_path):
    files = tree(tmp_path, a_py="f(1)\n")
    late = Crew(size=1, file_seconds_max=10, seconds_max=0)
    try:
        found = find_matches(late, files, ANYWHERE, "f($A)", limit=10, offset=0, is_left=lambda: False)
        assert (found.coverage.is_incomplete, found.matches) == (True, ())
        with pytest.raises(CodespaceError) as refusal:
            rewrite_files(
                late, files, ANYWHERE, [Rewriting("f($A)", "g($A)")], limit=None, files_max=9, is_left=lambda: False
            )
        assert refusal.value.code is ErrorCode.TIMEOUT
    finally:
        late.close()


def test_a_job_that_nobody_waits_for_ends(crew, tmp_path):
    files = tree(tmp_path, a_py="f(1)\n")
    with pytest.raises(JobLeftError):
        find_matches(crew, files, ANYWHERE, "f($A)", limit=10, offset=0, is_left=lambda: True)


async def test_workers_that_are_idle_are_let_go_and_started_again_when_they_are_needed(tmp_path):
    files = tree(tmp_path, a_py="f(1)\n")
    async with open_structural_search(files_changed_max=1, idle_seconds_max=0.01) as search:
        for _ in range(2):
            with anyio.fail_after(SECONDS_MAX):
                assert len((await search.find(files, ANYWHERE, "f($A)", limit=9, offset=0)).matches) == 1
                while search._crew.pids:
                    await anyio.sleep(0.01)


async def test_a_cancelled_search_leaves_the_next_one_alone(search, tmp_path):
    files = tree(tmp_path, **{f"f{number:03}_py": "x = [f(1)]\n" * 2000 for number in range(40)})
    with anyio.move_on_after(0.1) as scope:
        await search.find(files, ANYWHERE, "f($A)", limit=1000, offset=50_000)
    assert scope.cancelled_caught
    with anyio.fail_after(SECONDS_MAX):
        found = await search.find(files, StructuralScope(("f000.py",)), "f($A)", limit=3, offset=1)
    assert [each.line for each in found.matches] == [2, 3, 4]


LINES = st.sampled_from(["f(1)", "g(f(x))", "x = 'é🎉'", "\tf(1,\n\t\t2)", "# f(3)", "'''f(4)'''", "", "if y:\n\tf(y)"])


@settings(max_examples=25)
@given(lines=st.lists(LINES, max_size=8), ends=st.sampled_from(["\n", "\r\n"]), mark=st.sampled_from(["", "\ufeff"]))
async def test_a_rewrite_there_and_back_gives_every_byte_again(search, tmp_path, lines, ends, mark):
    before = (mark + "".join(line + "\n" for line in lines).replace("\n", ends)).encode()
    files = tree(tmp_path, a_py=before)
    there = await search.rewrite(files, ANYWHERE, [Rewriting("f($$$A)", "renamed($$$A)")], limit=None)
    if not there.files:
        return
    tree(tmp_path, a_py=there.files[0].after)
    back = await search.rewrite(files, ANYWHERE, [Rewriting("renamed($$$A)", "f($$$A)")], limit=None)
    assert len(back.files) == 1
    assert back.files[0].after == before
