"""Where the server listens over HTTP and whom it lets in: flags, environment and file, and what is refused."""

from pathlib import Path

import pytest

from adapters.settings.http import HttpSettings, listening_at, resolve_http
from adapters.settings.load import Flags, Settings, load_settings
from adapters.settings.model import HttpTable, WorkspaceTable
from adapters.settings.problem import StartupError


def loaded(config: Path, **environment: str) -> Settings:
    return load_settings(
        Flags(config=str(config)), environment, machine_id=lambda: "machine", lock_directory=config.parent / "locks"
    )


def written(tmp_path: Path, text: str) -> Path:
    config = tmp_path / "config.toml"
    config.write_text(text, encoding="utf-8")
    return config


def test_without_a_word_it_is_this_machine_and_nobody_has_to_show_anything(tmp_path: Path) -> None:
    assert loaded(written(tmp_path, "")).http == HttpSettings("127.0.0.1", 8787, None, None, (), ())


def test_the_file_says_where_and_the_command_line_says_it_better(tmp_path: Path) -> None:
    settings = loaded(written(tmp_path, '[http]\nhost = "::1"\nport = 9000\nallowed_hosts = ["code.example"]\n')).http
    assert (settings.host, settings.port, settings.allowed_hosts) == ("::1", 9000, ("code.example",))
    assert listening_at(settings, "") is settings
    moved = listening_at(settings, "localhost:0")
    assert (moved.host, moved.port, moved.allowed_hosts) == ("localhost", 0, ("code.example",))
    assert listening_at(settings, "[fe80::1%eth0]:80").host == "fe80::1%eth0"


@pytest.mark.parametrize(
    "address",
    ["8787", "localhost", ":8787", "::1:8787", "[::1]", "host:", "host:65536", "a b:1", "http://x:1", "x:1/y"],
)
def test_an_address_that_is_written_otherwise_is_refused_with_the_form(address: str) -> None:
    with pytest.raises(StartupError, match="write HOST:PORT"):
        listening_at(HttpSettings(), address)


def test_the_token_of_the_environment_wins_and_a_blank_one_is_none(tmp_path: Path) -> None:
    config = written(tmp_path, '[http]\ntoken = " from-file\\n"\n')
    assert loaded(config).http.token == "from-file"
    assert loaded(config, CODESPACE_HTTP_TOKEN=" from-environment ").http.token == "from-environment"
    assert loaded(config, CODESPACE_HTTP_TOKEN="  ").http.token == "from-file"
    assert loaded(written(tmp_path, '[http]\ntoken = "  "\n')).http.token is None


@pytest.mark.parametrize("token", ["two words", "wörter", "line\nbreak", "tab\tinside", "nul\0"])
def test_a_token_that_no_header_can_carry_is_refused_and_not_told(tmp_path: Path, token: str) -> None:
    for written_token, environment in ((token, {}), (None, {"CODESPACE_HTTP_TOKEN": token})):
        with pytest.raises(StartupError, match="can't be sent in a header") as refused:
            resolve_http(HttpTable(token=written_token), {}, environment)
        assert token not in str(refused.value)


def test_a_token_shows_in_no_description_of_the_settings_and_not_in_their_digest(tmp_path: Path) -> None:
    with_token = loaded(written(tmp_path, '[http]\ntoken = "s3cret"\n'))
    assert "s3cret" not in repr(with_token)
    assert with_token.digest == loaded(written(tmp_path, "")).digest


@pytest.mark.parametrize(
    ("key", "entry"),
    [
        ("allowed_hosts", "*.example"), ("allowed_hosts", "http://code.example"), ("allowed_hosts", "code.example/x"),
        ("allowed_hosts", "code.example:*"), ("allowed_hosts", ""), ("allowed_hosts", "me@code.example"),
        ("allowed_origins", "code.example"), ("allowed_origins", "https://code.example/"), ("allowed_origins", "null"),
        ("allowed_origins", "*"), ("allowed_origins", "https://me@code.example"),
    ],
)
def test_a_pattern_or_a_part_too_much_is_refused_since_every_entry_is_exact(key: str, entry: str) -> None:
    with pytest.raises(StartupError, match=f"http.{key}"):
        resolve_http(HttpTable.model_validate({key: [entry]}), {}, {})


@pytest.mark.parametrize("variable", ["CODESPACE_HTTP_TOKEN", "CODESPACE_OPERATOR_TOKEN"])
def test_no_workspace_may_hand_a_token_on_to_commands(variable: str) -> None:
    table = WorkspaceTable(root="/x", pass_env=[variable])
    with pytest.raises(StartupError, match=f"pass_env would hand {variable} to commands"):
        resolve_http(HttpTable(), {"demo": table}, {variable: "s3cret"})


def test_the_operators_token_is_read_like_the_agents_and_told_as_little(tmp_path: Path) -> None:
    config = written(tmp_path, '[http]\noperator_token = "from-file"\n')
    assert loaded(config).http.operator_token == "from-file"
    assert loaded(config, CODESPACE_OPERATOR_TOKEN=" from-environment ").http.operator_token == "from-environment"
    assert loaded(written(tmp_path, ""), CODESPACE_OPERATOR_TOKEN=" ").http.operator_token is None
    assert "from-file" not in repr(loaded(config))
    with pytest.raises(StartupError, match="can't be sent in a header") as refused:
        loaded(config, CODESPACE_OPERATOR_TOKEN="two words")
    assert "two words" not in str(refused.value)


def test_the_operators_token_is_nobody_elses(tmp_path: Path) -> None:
    config = written(tmp_path, '[http]\ntoken = "s3cret"\noperator_token = "s3cret"\n')
    with pytest.raises(StartupError, match="Give it its own") as refused:
        loaded(config)
    assert "s3cret" not in str(refused.value)
