"""Workspaces of the command line and the file: short form, canonical roots, identity, nesting, private paths."""

import os
from cProfile import Profile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.settings.model import WorkspaceTable
from adapters.settings.problem import StartupError
from adapters.settings.workspaces import parse_short_form, resolve_workspaces
from codespace_es.policy import protects
from codespace_es.vocabulary.identifiers import workspace_key
from codespace_es.vocabulary.workspace import Workspace


def resolved(*private: Path, **roots: Path | str) -> dict[str, Workspace]:
    tables = {name: WorkspaceTable(root=str(root)) for name, root in roots.items()}
    return resolve_workspaces(tables, machine_id="m", private_paths=private)


@pytest.mark.parametrize(
    ("ending", "profile"), [("", None), (":read-only", "read-only"), (":workspace-write", "workspace-write")]
)
def test_the_short_form_has_a_name_a_path_and_maybe_a_profile(
    tmp_path: Path, ending: str, profile: str | None
) -> None:
    name, keys = parse_short_form(f"demo={tmp_path}{ending}")
    assert name == "demo"
    assert keys["root"] == str(tmp_path)
    assert keys.get("profile") == profile


def test_a_colon_that_begins_no_profile_belongs_to_the_path(tmp_path: Path) -> None:
    odd = tmp_path / "a:b=c:read-onlyish"
    odd.mkdir()
    assert parse_short_form(f"demo={odd}") == ("demo", {"root": str(odd)})


def test_a_misspelt_profile_is_named_as_one(tmp_path: Path) -> None:
    with pytest.raises(StartupError, match=r"A profile is .*workspace-write.*, not 'workspace-rite'"):
        parse_short_form(f"demo={tmp_path}:workspace-rite")


def test_commands_get_the_variables_that_are_written_or_passed_on_by_name_and_no_other(tmp_path: Path) -> None:
    written = {"MODE": "test", "BOTH": "written"}
    table = WorkspaceTable(root=str(tmp_path), env=written, pass_env=["TOKEN", "BOTH", "NO"])
    environment = {"TOKEN": "t", "BOTH": "passed", "SECRET": "s"}
    resolved = resolve_workspaces({"demo": table}, machine_id="m", private_paths=(), environment=environment)
    assert resolved["demo"].env == {"TOKEN": "t", "BOTH": "written", "MODE": "test"}


@pytest.mark.parametrize("variables", [{"": "x"}, {"A=B": "x"}, {"A": "x\0y"}, {"A\0": "x"}])
def test_what_cannot_be_a_variable_is_refused(tmp_path: Path, variables: dict[str, str]) -> None:
    with pytest.raises(StartupError, match="can't be an environment variable"):
        resolve_workspaces({"demo": WorkspaceTable(root=str(tmp_path), env=variables)}, machine_id="m",
                           private_paths=())


@pytest.mark.parametrize("text", ["demo", "=x", "demo=", "demo=/there/is/nothing"])
def test_a_short_form_that_cannot_be_meant_is_refused(text: str) -> None:
    with pytest.raises(StartupError, match="--workspace"):
        parse_short_form(text)


def test_a_workspace_is_its_real_directory_whatever_it_is_called_and_however_it_is_reached(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    one = resolved(one=tmp_path / "real")["one"]
    two = resolved(two=tmp_path / "link" / ".." / "link")["two"]
    assert one.root == two.root == str(tmp_path / "real")
    assert one.key == two.key == workspace_key("m", str(tmp_path / "real"))


@given(st.lists(st.sampled_from(["a", "b"]), max_size=3), st.lists(st.sampled_from(["a", "b"]), max_size=3))
def test_two_roots_are_refused_exactly_if_one_is_the_other_or_inside_it(first: list[str], second: list[str]) -> None:
    one, two = "/".join(["/r", *first]), "/".join(["/r", *second])
    is_nested = first[: len(second)] == second or second[: len(first)] == first
    if is_nested:
        with pytest.raises(StartupError, match="overlap"):
            resolved(one=one, two=two)
    else:
        assert len(resolved(one=one, two=two)) == 2


def test_many_roots_are_not_compared_each_with_each() -> None:
    def calls(number: int) -> int:
        profile = Profile()
        profile.runcall(resolved, **{f"w{each}": f"/nowhere/{each}/x" for each in range(number)})
        return sum(entry.callcount for entry in profile.getstats())

    calls(1)  # what is made once
    assert calls(400) < 5 * calls(100)


def test_a_nested_root_is_found_behind_a_link(tmp_path: Path) -> None:
    (tmp_path / "outer" / "inner").mkdir(parents=True)
    (tmp_path / "elsewhere").symlink_to("outer/inner")
    with pytest.raises(StartupError, match="overlap"):
        resolved(outer=tmp_path / "outer", inner=tmp_path / "elsewhere")


@pytest.mark.parametrize("root", ["relative/path", "/", "/nul\0byte", "/sur\udcff"])
def test_a_root_that_cannot_be_one_is_refused(root: str) -> None:
    with pytest.raises(StartupError, match="root"):
        resolved(demo=root)


def test_a_tilde_is_the_home_directory(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert resolved(demo="~/project")["demo"].root == os.path.realpath(tmp_path / "project")


@pytest.mark.parametrize("name", ["", "a b", "-x", "x" * 65, "é"])
def test_a_name_that_is_no_plain_word_is_refused(name: str) -> None:
    with pytest.raises(StartupError, match="name has 1 to 64"):
        resolve_workspaces({name: WorkspaceTable(root="/x")}, machine_id="m", private_paths=())


@pytest.mark.parametrize("pattern", ["", "/", "../x", "a/../../b"])
def test_a_protected_path_that_names_nothing_beneath_the_root_is_refused(pattern: str) -> None:
    table = WorkspaceTable(root="/x", protected_paths=[pattern])
    with pytest.raises(StartupError, match="protected_paths"):
        resolve_workspaces({"demo": table}, machine_id="m", private_paths=())


def test_our_own_files_inside_a_workspace_are_protected_even_with_odd_names(tmp_path: Path) -> None:
    inside = tmp_path / "state" / "odd [x]*{y}"
    workspace = resolved(inside, tmp_path / "elsewhere.db", demo=tmp_path)["demo"]
    is_protected = protects(workspace)
    assert is_protected("state/odd [x]*{y}/codespace.db")
    assert is_protected("elsewhere.db")
    assert not is_protected("state/other.py")
    assert not is_protected("state/odd xZy/codespace.db")


def test_our_own_directory_is_no_workspace(tmp_path: Path) -> None:
    with pytest.raises(StartupError, match="a directory of codespace-es itself"):
        resolved(tmp_path, demo=tmp_path)
