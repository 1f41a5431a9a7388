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
    ],
)
def test_a_mistake_is_named_with_its_place(tmp_path: Path, text: str, told: str) -> None:
    path = written(tmp_path, text)
    with pytest.raises(StartupError) as refused:
        read_settings_file(path)
    assert told in str(refused.value)
    assert str(path) in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_file_that_cannot_be_read_or_has_no_known_ending_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StartupError, match="can't be read: No such file"):
        read_settings_file(tmp_path / "nothing.toml")
    with pytest.raises(StartupError, match=r"must end in \.toml or \.json"):
        read_settings_file(written(tmp_path, "", name="config.yaml"))
    with pytest.raises(StartupError, match="not understood"):
        read_settings_file(written(tmp_path, "[" * 100_000, name="deep.json"))
