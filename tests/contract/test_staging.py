"""The stack of a session over a real log: what tool authors know as push, peek, pop and has_pending."""

from pathlib import Path

import pytest

from codespace_es.command_handlers.stacks import Session, read_stack
from codespace_es.command_handlers.staging import LoggedPendingActions
from codespace_es.ports.pending_actions import (
    Claim,
    Closure,
    NewAction,
    RegisteredCallback,
    StagedEdit,
    StagedEdits,
)
from codespace_es.vocabulary import limits
from codespace_es.vocabulary.errors import CodespaceError, ErrorCode
from codespace_es.vocabulary.event import ABSENT, Caller
from codespace_es.vocabulary.file_change import digest_of
from codespace_es.vocabulary.identifiers import RequestId
from support.holds import audit
from support.pending import resolve
from support.server import Server

pytestmark = pytest.mark.anyio

CALLER = Caller("mcp", RequestId("req-1"), "tests/1")
BEFORE = b"one\r\n\ttwo \xc3\xa9\r\n"
AFTER = b"uno\r\n\ttwo \xc3\xa9\r\n"


def store_of(server: Server, work_id: str | None = None) -> LoggedPendingActions:
    return LoggedPendingActions(server.world, Session(server.world.workspaces["demo"], work_id), CALLER)


def edits_of(*edits: StagedEdit, label: str = "Rename one") -> NewAction:
    return NewAction(label, "rename", StagedEdits(edits), {"text": "a preview"}, details={"n": 1})


EDIT = StagedEdit("a.txt", digest_of(BEFORE), AFTER)


@pytest.fixture
async def server(tmp_path: Path):
    root = tmp_path / "root"
    root.mkdir()
    (root / "a.txt").write_bytes(BEFORE)
    async with Server(tmp_path, {"demo": root}) as server:
        yield server


async def test_a_push_writes_no_file_and_is_found_by_every_server(server: Server, tmp_path: Path):
    pushed = await store_of(server).push(edits_of(EDIT, StagedEdit("new/b.txt", ABSENT, b"")))
    assert (tmp_path / "root" / "a.txt").read_bytes() == BEFORE
    assert not (tmp_path / "root" / "new").exists()
    assert pushed.action_id in pushed.how_to_resolve
    assert pushed.how_to_resolve.startswith("Nothing is changed yet.")
    async with Server(tmp_path, {"other name": tmp_path / "root"}) as second:
        store = LoggedPendingActions(second.world, Session(second.world.workspaces["other name"]), CALLER)
        waiting = await store.peek()
        assert waiting is not None
        assert (waiting.action_id, waiting.label, waiting.is_durable) == (pushed.action_id, "Rename one", True)
        stack = await read_stack(second.world, store.session.stream_id)
        staged = stack.state.unresolved[0].edits[0]
        assert await second.world.log.read_body(store.session.stream_id, staged.after) == AFTER
    assert audit(tmp_path).findings == ()


async def test_stacks_are_apart_and_each_is_last_in_first_out(server: Server):
    workspace, work = store_of(server), store_of(server, "work-1")
    first = await workspace.push(edits_of(EDIT))
    second = await workspace.push(NewAction("Call home", "custom", Closure(), {}))
    assert await work.has_pending() is False
    assert (await workspace.pop(Claim("discard"))).action_id == second.action_id
    with pytest.raises(CodespaceError) as caught:
        await workspace.pop(Claim("apply"))
    assert caught.value.code is ErrorCode.WORKSPACE_BUSY
    third = await work.push(NewAction("Go", "custom", RegisteredCallback("go", {"n": 1}), {}))
    assert (await work.pop(Claim("apply", extra={"x": 1}, action_id=third.action_id))).is_durable
    assert await workspace.has_pending()
    assert first.action_id != second.action_id


@pytest.mark.parametrize(("action", "code", "field"), [
    (edits_of(EDIT, label=" "), ErrorCode.INVALID_ARGUMENT, "label"),
    (edits_of(), ErrorCode.INVALID_ARGUMENT, "edits"),
    (edits_of(EDIT, EDIT), ErrorCode.INVALID_ARGUMENT, "edits"),
    (edits_of(StagedEdit("./a.txt", ABSENT, b"")), ErrorCode.INVALID_ARGUMENT, "edits"),
    (edits_of(StagedEdit("../a.txt", ABSENT, b"")), ErrorCode.PATH_ESCAPE, None),
    (edits_of(StagedEdit(".git/hooks/x", ABSENT, b"")), ErrorCode.PATH_PROTECTED, None),
    (NewAction("x", "", Closure(), {}), ErrorCode.INVALID_ARGUMENT, "source_tool_name"),
    (NewAction("x", "y" * 201, Closure(), {}), ErrorCode.INVALID_ARGUMENT, "source_tool_name"),
    (NewAction("x", "y", RegisteredCallback("edits"), {}), ErrorCode.INVALID_ARGUMENT, "handler"),
    (NewAction("x", "y", RegisteredCallback("h", object()), {}), ErrorCode.INVALID_ARGUMENT, "payload"),
    (NewAction("x", "y", Closure(), {"a": "\ud800"}), ErrorCode.INVALID_ARGUMENT, "preview"),
    (NewAction("x", "y", Closure(), {}, details="d" * limits.PENDING_JSON_BYTES_MAX),
     ErrorCode.INVALID_ARGUMENT, "details"),
])
async def test_what_could_never_be_applied_or_stored_is_not_staged(server: Server, action, code, field):
    with pytest.raises(CodespaceError) as caught:
        await store_of(server).push(action)
    assert caught.value.code is code
    assert caught.value.detail.get("field") == field
    assert not await store_of(server).has_pending()


async def test_images_have_the_bounds_of_a_patch(server: Server, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(limits, "IMAGE_BYTES_MAX", 3)
    with pytest.raises(CodespaceError) as caught:
        await store_of(server).push(edits_of(EDIT))
    assert caught.value.code is ErrorCode.INVALID_PATCH


async def test_nothing_is_staged_where_nothing_may_be_written(tmp_path: Path):
    (tmp_path / "root").mkdir()
    async with Server(tmp_path, {"demo": tmp_path / "root"}, profile="read-only") as server:
        with pytest.raises(CodespaceError) as caught:
            await store_of(server).push(NewAction("x", "y", Closure(), {}))
        assert caught.value.code is ErrorCode.UNAUTHORIZED


@pytest.mark.parametrize(("characters", "kinds"), [(80, []), (81, ["long_label"]), (1_000, ["long_label"])])
async def test_a_long_label_is_remarked_and_a_very_long_one_cut(server: Server, characters: int, kinds: list[str]):
    pushed = await store_of(server).push(NewAction("x" * characters, "y", Closure(), {}))
    assert [notice.kind for notice in pushed.notices] == kinds
    waiting = await store_of(server).peek()
    assert waiting is not None
    assert len(waiting.label) == min(characters, limits.LABEL_CHARACTERS_MAX)


async def test_a_stack_that_is_full_takes_no_more(server: Server, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(limits, "PENDING_ACTIONS_MAX", 2)
    for _ in range(2):
        await store_of(server).push(NewAction("x", "y", Closure(), {}))
    with pytest.raises(CodespaceError) as caught:
        await store_of(server).push(NewAction("x", "y", Closure(), {}))
    assert caught.value.code is ErrorCode.RESOURCE_QUEUE_FULL


async def test_a_stack_is_read_since_it_was_last_empty_so_that_what_is_over_costs_nothing(server: Server):
    store = store_of(server)
    assert (await read_stack(server.world, store.session.stream_id)).folded.version == 0
    for _ in range(3):
        await store.push(edits_of(EDIT))
        await resolve(server, "discard")
    empty = await read_stack(server.world, store.session.stream_id)
    assert (empty.folded.version, empty.recorded, empty.state.unresolved) == (9, (), ())
    await store.push(edits_of(EDIT, label="bottom"))
    await store.push(edits_of(EDIT, label="top"))
    stack = await read_stack(server.world, store.session.stream_id)
    assert (stack.folded.version, len(stack.recorded)) == (11, 2)
    assert [each.label for each in stack.state.unresolved] == ["bottom", "top"]
