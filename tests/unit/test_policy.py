"""What a workspace allows: only what its operator has set, whatever a caller says."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codespace_es import policy
from codespace_es.vocabulary.errors import CodespaceError, ErrorCode
from codespace_es.vocabulary.identifiers import workspace_key
from codespace_es.vocabulary.workspace import Workspace

NAMES = st.text(st.sampled_from("ab.-_ é"), min_size=1, max_size=6).filter(lambda name: name not in (".", ".."))
PATHS = st.lists(NAMES, min_size=1, max_size=4).map("/".join)


def make(**settings) -> Workspace:
    return Workspace(workspace_id="demo", key=workspace_key("machine", "/srv"), root="/srv", **settings)


@pytest.mark.parametrize(("settings", "allowed"), [
    ({}, {"read"}),
    ({"profile": "workspace-write"}, {"read", "write", "exec"}),
    ({"environment": "linux-container"}, set()),
    ({"environment": "linux-container", "profile": "workspace-write"}, set()),
])
def test_profile_and_environment_decide_what_is_allowed(settings, allowed):
    workspace = make(**settings)
    assert {action for action in ("read", "write", "exec") if policy.allows(workspace, action)} == allowed


def test_a_refusal_says_which_setting_is_in_the_way():
    with pytest.raises(CodespaceError) as refusal:
        policy.require(make(), "write")
    assert refusal.value.code == ErrorCode.UNAUTHORIZED
    assert "profile is read-only" in refusal.value.message
    with pytest.raises(CodespaceError) as refusal:
        policy.require(make(environment="linux-container"), "read")
    assert "linux-container" in refusal.value.message


def test_what_is_allowed_passes():
    policy.require(make(profile="workspace-write"), "exec")


@pytest.mark.parametrize(("pattern", "path", "is_protected"), [
    ("secrets", "secrets", True),
    ("secrets", "deep/secrets/key.pem", True),
    ("secrets", "secrets.txt", False),
    ("*.pem", "a/b/key.pem", True),
    ("*.pem", "key.pem/inside", True),
    ("*.pem", "key.pem.txt", False),
    ("config/*.toml", "config/a.toml", True),
    ("config/*.toml", "other/config/a.toml", False),
    ("config/*.toml", "config/deep/a.toml", False),
    ("config/**/*.toml", "config/deep/er/a.toml", True),
    ("/config", "config/a", True),
    ("config/", "config/a", True),
    ("*.{key,pem}", "a.key", True),
    (".env", ".env", True),
    ("*", ".hidden", True),
    ("Secrets", "secrets", False),
])
def test_a_glob_protects_what_it_names_and_all_beneath(pattern, path, is_protected):
    assert policy.protects(make(protected_paths=(pattern,)))(path) == is_protected


@pytest.mark.parametrize("path", [".git", ".git/config", "module/.git/hooks/pre-commit"])
def test_git_is_always_protected(path):
    assert policy.protects(make())(path)


@pytest.mark.parametrize("path", [".gitignore", ".github/workflows/a.yml", "a.git", "git/config"])
def test_what_only_looks_like_git_is_not(path):
    assert not policy.protects(make())(path)


@given(path=PATHS, below=PATHS)
def test_whatever_lies_beneath_a_protected_path_is_protected(path, below):
    is_protected = policy.protects(make(protected_paths=("a*",)))
    if is_protected(path):
        assert is_protected(f"{path}/{below}")


@given(path=PATHS)
def test_more_globs_never_protect_less(path):
    if policy.protects(make(protected_paths=("a",)))(path):
        assert policy.protects(make(protected_paths=("a", "b")))(path)


@pytest.mark.parametrize("channel", ["cli", "web", "http"])
@pytest.mark.parametrize("approvals", ["off", "confirm", "operator"])
def test_the_operator_may_always_grant(channel, approvals):
    assert policy.may_grant(make(approvals=approvals), channel)
    assert policy.may_grant(None, channel)


@pytest.mark.parametrize("channel", ["mcp", "elicitation", "recovery", "timer"])
def test_whoever_speaks_through_a_client_grants_only_where_the_operator_lets_them(channel):
    assert policy.may_grant(make(approvals="confirm"), channel)
    assert not policy.may_grant(make(approvals="operator"), channel)
    assert not policy.may_grant(None, channel)
