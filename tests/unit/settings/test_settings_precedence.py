"""Flags win over the environment, that over the file, that over the defaults."""

from pathlib import Path

import pytest

from adapters.settings.directories import default_data_directory, make_private_directory
from adapters.settings.load import NO_WORKSPACE, Flags, Settings, load_settings, require_workspaces
from adapters.settings.problem import StartupError


def loaded(flags: Flags = Flags(), **environment: str) -> Settings:  # noqa: B008 - it is frozen
    return load_settings(flags, environment, machine_id=lambda: "m", lock_directory=Path("/var/locks"))


@pytest.fixture
def config(tmp_path: Path) -> Path:
    (tmp_path / "file-root").mkdir()
    path = tmp_path / "config.toml"
    path.write_text(
        f'data_dir = "{tmp_path}/from-file"\n'
        f'[defaults]\nprotected_paths = [".env"]\npatch_matching = "strict"\n'
        f'[workspaces.demo]\nroot = "{tmp_path}/file-root"\npatch_matching = "lenient"\n',
        encoding="utf-8",
    )
    return path


def test_the_data_directory_comes_from_flag_environment_file_default_in_this_order(
    config: Path, tmp_path: Path
) -> None:
    flags = Flags(config=str(config), data_dir=str(tmp_path / "from-flag"))
    environment = {"CODESPACE_DATA_DIR": str(tmp_path / "from-environment")}
    assert loaded(flags, **environment).data_directory == tmp_path / "from-flag"
    assert loaded(Flags(config=str(config)), **environment).data_directory == tmp_path / "from-environment"
    assert loaded(Flags(config=str(config))).data_directory == tmp_path / "from-file"
    assert loaded().data_directory == default_data_directory()


def test_the_configuration_is_named_by_flag_or_environment(config: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.toml"
    other.write_text("", encoding="utf-8")
    assert set(loaded(CODESPACE_CONFIG=str(config)).workspaces) == {"demo"}
    assert loaded(Flags(config=str(other)), CODESPACE_CONFIG=str(config)).workspaces == {}


def test_a_workspace_of_the_command_line_replaces_the_file_s_of_the_same_name(config: Path, tmp_path: Path) -> None:
    (tmp_path / "flag-root").mkdir()
    from_file = loaded(Flags(config=str(config))).workspaces["demo"]
    from_flag = loaded(Flags(config=str(config), workspaces=(f"demo={tmp_path}/flag-root",))).workspaces["demo"]
    assert (from_file.root, from_file.profile) == (str(tmp_path / "file-root"), "read-only")
    assert (from_flag.root, from_flag.profile) == (str(tmp_path / "flag-root"), "workspace-write")
    assert from_file.patch_matching == "lenient"
    assert from_flag.patch_matching == "strict"
    assert from_file.protected_paths == from_flag.protected_paths == (".env",)


def test_a_profile_among_the_defaults_holds_for_the_short_form_too(tmp_path: Path) -> None:
    config = tmp_path / "config.toml"
    config.write_text('[defaults]\nprofile = "read-only"\n', encoding="utf-8")
    (tmp_path / "root").mkdir()
    flags = Flags(config=str(config), root=str(tmp_path / "root"))
    assert loaded(flags).workspaces["default"].profile == "read-only"


def test_the_log_lies_in_the_data_directory_unless_its_file_is_named(tmp_path: Path) -> None:
    assert loaded(Flags(data_dir=str(tmp_path))).log_path == tmp_path / "codespace.db"
    assert loaded(CODESPACE_OPERATIONS_DB=str(tmp_path / "x.db")).log_path == tmp_path / "x.db"
    assert loaded(Flags(is_ephemeral=True)).log_path is None


def test_the_store_of_the_environment_wins_over_the_file_s_and_an_ephemeral_log_over_both(tmp_path: Path) -> None:
    config = tmp_path / "config.toml"
    config.write_text('store = "postgresql://me:s3cret@db/log"\n', encoding="utf-8")
    flags = Flags(config=str(config), data_dir=str(tmp_path))
    assert str(loaded(flags).log_place) == "postgresql://me@db/log"
    assert loaded(flags, CODESPACE_STORE="sqlite").log_place == tmp_path / "codespace.db"
    assert str(loaded(flags, CODESPACE_STORE="postgres://other/log").log_place) == "postgresql://other/log"
    assert loaded(Flags(config=str(config), is_ephemeral=True)).log_place is None
    assert "s3cret" not in repr(loaded(flags))


def test_two_places_for_one_log_are_refused(tmp_path: Path) -> None:
    with pytest.raises(StartupError, match="unset it"):
        loaded(CODESPACE_STORE="postgresql://db/log", CODESPACE_OPERATIONS_DB=str(tmp_path / "x.db"))


def test_the_time_limit_of_a_workspace_wins_over_the_environment_and_that_over_the_defaults(tmp_path: Path) -> None:
    config = tmp_path / "config.toml"
    config.write_text(
        f'[defaults]\nprocess_timeout_seconds = 5\n'
        f'[workspaces.slow]\nroot = "{tmp_path}/slow"\nprocess_timeout_seconds = 600\n'
        f'[workspaces.other]\nroot = "{tmp_path}/other"\n', encoding="utf-8",
    )
    flags = Flags(config=str(config))

    def limits(**environment: str) -> list[int]:
        return [each.process_timeout_seconds for each in loaded(flags, **environment).workspaces.values()]

    assert limits() == [600, 5]
    assert limits(CODESPACE_PROCESS_TIMEOUT_SECS="7") == [600, 7]
    assert limits(CODESPACE_PROCESS_TIMEOUT_SECS="0") == [600, 0]


def test_the_number_of_processes_comes_from_environment_file_default_in_this_order(tmp_path: Path) -> None:
    config = tmp_path / "config.toml"
    config.write_text("max_processes = 3\n", encoding="utf-8")
    flags = Flags(config=str(config))
    assert loaded().max_processes == 8
    assert loaded(flags).max_processes == 3
    assert loaded(flags, CODESPACE_MAX_PROCESSES="5").max_processes == 5
    assert loaded(flags, CODESPACE_AST_MAX_FILES="5").structural_files_max == 5
    assert loaded(flags).structural_files_max == 1000


@pytest.mark.parametrize(("name", "value"), [
    ("CODESPACE_PROCESS_TIMEOUT_SECS", "soon"), ("CODESPACE_PROCESS_TIMEOUT_SECS", "-1"),
    ("CODESPACE_PROCESS_TIMEOUT_SECS", "1.5"), ("CODESPACE_MAX_PROCESSES", "0"), ("CODESPACE_MAX_PROCESSES", "many"),
    ("CODESPACE_AST_MAX_FILES", "0"),
])
def test_an_unusable_number_of_the_environment_is_refused_and_never_replaced(name: str, value: str) -> None:
    with pytest.raises(StartupError, match=f"{name} is '{value}'"):
        loaded(**{name: value})


def test_a_runner_elsewhere_is_asked_for_by_kind_and_socket_together() -> None:
    assert loaded().runner_socket is None
    assert loaded(CODESPACE_RUNNER="in-process").runner_socket is None
    assert loaded(CODESPACE_RUNNER="uds", CODESPACE_RUNNER_SOCKET="/run/r").runner_socket == "/run/r"
    for half in ({"CODESPACE_RUNNER": "uds"}, {"CODESPACE_RUNNER": "tcp"}, {"CODESPACE_RUNNER_SOCKET": "/run/r"}):
        with pytest.raises(StartupError, match="CODESPACE_RUNNER"):
            loaded(**half)


def test_without_a_workspace_the_line_to_type_is_told() -> None:
    with pytest.raises(StartupError) as refused:
        require_workspaces(loaded())
    assert str(refused.value) == NO_WORKSPACE
    assert "codespace-es serve --workspace demo=" in NO_WORKSPACE


def test_a_name_twice_on_the_command_line_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    with pytest.raises(StartupError, match="named twice"):
        loaded(Flags(workspaces=(f"default={tmp_path}",), root=f"{tmp_path}/a"))


def test_the_digest_follows_the_policy_and_not_the_order_of_arguments(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    write = loaded(Flags(workspaces=(f"x={tmp_path}/a",)))
    read = loaded(Flags(workspaces=(f"x={tmp_path}/a:read-only",)))
    assert write.digest == loaded(Flags(workspaces=(f"x={tmp_path}/a:workspace-write",))).digest
    assert write.digest != read.digest


def test_a_private_directory_is_made_closed_and_an_open_one_is_closed(tmp_path: Path) -> None:
    made, found = tmp_path / "a" / "b", tmp_path / "c"
    found.mkdir(mode=0o755)
    for path in (made, found):
        make_private_directory(path)
        assert path.stat().st_mode & 0o777 == 0o700
    found.chmod(0o755)
    (found / "codespace.db").write_text("", encoding="utf-8")
    make_private_directory(found)
    assert found.stat().st_mode & 0o777 == 0o700
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(StartupError, match="can't be made"):
        make_private_directory(tmp_path / "file" / "x")


def test_an_open_directory_that_holds_other_things_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    tmp_path.chmod(0o1777)
    (tmp_path / "other").write_text("", encoding="utf-8")
    with pytest.raises(StartupError, match="open to other users"):
        make_private_directory(tmp_path)
    assert tmp_path.stat().st_mode & 0o7777 == 0o1777
    tmp_path.chmod(0o700)
    make_private_directory(tmp_path)
