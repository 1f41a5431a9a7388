"""A configuration file is read strictly: what isn't known, or isn't there yet, is one clear line."""

import json
from pathlib import Path

import pytest

from adapters.settings.file import read_settings_file
from adapters.settings.problem import StartupError


def written(directory: Path, text: str, *, name: str = "config.toml") -> Path:
    path = directory / name
    path.write_text(text, encoding="utf-8")
    return path


def test_toml_and_json_say_the_same(tmp_path: Path) -> None:
    toml = written(tmp_path, '[workspaces.demo]\nroot = "/srv/demo"\nprotected_paths = [".env"]\n')
    tables = {"workspaces": {"demo": {"root": "/srv/demo", "protected_paths": [".env"]}}}
    assert read_settings_file(toml) == read_settings_file(written(tmp_path, json.dumps(tables), name="config.json"))


def test_a_workspace_in_a_file_is_read_only_unless_it_says_otherwise(tmp_path: Path) -> None:
    settings = read_settings_file(written(tmp_path, '[workspaces.demo]\nroot = "/srv/demo"\n'))
    assert settings.workspaces["demo"].profile == "read-only"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('[workspaces.demo]\nroot = "/x"\nprofil = "read-only"\n',
         "workspaces.demo.profil: unknown key; did you mean 'profile'?"),
        ('data_dirr = "/x"\n', "data_dirr: unknown key; did you mean 'data_dir'?"),
        ('[defaults]\npatch_match = "strict"\n', "defaults.patch_match: unknown key; did you mean 'patch_matching'?"),
        ("[http]\nprt = 1\n", "http.prt: unknown key; did you mean 'port'?"),
        ('[workspaces.demo]\nroot = "/x"\nprofile = "host-admin"\n', "workspaces.demo.profile: input should be"),
        ("[workspaces.demo]\nroot = 7\n", "workspaces.demo.root: input should be a valid string"),
        ('[workspaces.demo]\nprofile = "read-only"\n', "workspaces.demo.root is missing"),
        ('[defaults]\nroot = "/x"\n', "defaults.root: a root belongs to one workspace"),
        ("x = = 1\n", "not understood"),
        (f"max_processes = {'1' * 6000}\n", "not understood"),
        ('data_dir = "/x\\u0000"\n', "data_dir: it holds a NUL"),
        ('custom_tools = ["/a", "/x\\u0000"]\n', "custom_tools: it holds a NUL"),
        ('[workspaces.demo]\nroot = "/x\\u0000"\n', "workspaces.demo.root: it holds a NUL"),
        ('[workspaces.demo]\nroot = "/x"\nenv = {a = "x\\u0000"}\n', "workspaces.demo.env.a: it holds a NUL"),
        ('[workspaces."a\\u0000"]\nroot = "/x"\n', "workspaces: it holds a NUL"),
        ("[defaults]\napproval_ttl_seconds = 3153600001\n", "defaults.approval_ttl_seconds: input should be less"),
        ("workspaces = 1\n", "workspaces: input should be a"),
        ("[workspaces]\ndemo = 1\n", "workspaces.demo: input should be a table"),
    ],
)
def test_a_mistake_is_named_with_its_place(tmp_path: Path, text: str, told: str) -> None:
    path = written(tmp_path, text)
    with pytest.raises(StartupError) as refused:
        read_settings_file(path)
    assert told in str(refused.value)
    assert str(path) in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("1" * 6000, "not understood"),
        ("[]", "the file: input should be a table"),
        ('{"data_dir": "/\\ud800"}', "data_dir: it holds a NUL, or half"),
        ('{"workspaces": {"a": {"root": "/x", "profile": "read-only", "root": "/y"}}}', "'root' stands there twice"),
        ('{"workspaces": {"a": {"root": "/x"}, "a": {"root": "/y"}}}', "'a' stands there twice"),
    ],
)
def test_a_mistake_in_json_is_named_too(tmp_path: Path, text: str, told: str) -> None:
    with pytest.raises(StartupError) as refused:
        read_settings_file(written(tmp_path, text, name="config.json"))
    assert told in str(refused.value)


def test_a_byte_order_mark_is_no_part_of_a_file(tmp_path: Path) -> None:
    for name, text in (("a.toml", '\ufeffdata_dir = "/x"\n'), ("b.json", '\ufeff{"data_dir": "/x"}')):
        assert read_settings_file(written(tmp_path, text, name=name)).data_dir == "/x"


def test_a_file_that_cannot_be_read_or_has_no_known_ending_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StartupError, match="can't be read: No such file"):
        read_settings_file(tmp_path / "nothing.toml")
    with pytest.raises(StartupError, match=r"must end in \.toml or \.json"):
        read_settings_file(written(tmp_path, "", name="config.yaml"))
    with pytest.raises(StartupError, match="not understood"):
        read_settings_file(written(tmp_path, "[" * 100_000, name="deep.json"))
