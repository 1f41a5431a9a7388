"""`resolve` against real files and a real log: apply, discard, errors, replays, order, staleness."""

from pathlib import Path

import pytest

from codespace_es.aggregates.operation import OperationMinted
from codespace_es.command_handlers.previewing import ListPending
from codespace_es.command_handlers.reporting import ReportOperation
from codespace_es.command_handlers.reverting import RevertOperation
from codespace_es.ports.tool_host import CallbackRaisedError, CallbackResult
from support.holds import ask, audit
from support.pending import (
    FakeToolHost,
    adds,
    push_closure,
    push_edits,
    push_handler,
    raises,
    resolve,
    returns,
    stack_of,
    waiting,
)
from support.server import Server

pytestmark = pytest.mark.anyio

NOTHING = "No pending action to resolve. Nothing to apply or discard."


@pytest.fixture
async def root(tmp_path: Path) -> Path:
    (tmp_path / "root").mkdir()
    (tmp_path / "root" / "a.txt").write_bytes(b"one\r\n")
    return tmp_path / "root"


@pytest.fixture
def host() -> FakeToolHost:
    return FakeToolHost()


@pytest.fixture
async def server(tmp_path: Path, root: Path, host: FakeToolHost):
    async with Server(tmp_path, {"demo": root}, tool_host=host) as server:
        yield server
    assert audit(tmp_path).findings == ()


# Nothing pending


@pytest.mark.parametrize("action", ["apply", "discard"])
async def test_with_nothing_pending_resolve_fails_in_exactly_these_words(server: Server, action: str):
    told = await resolve(server, action, id="act-nonsense", reason="why not")
    assert (told["code"], told["message"]) == ("NO_PENDING_ACTION", NOTHING)


# Staged edits


async def test_an_apply_writes_exactly_the_staged_bytes_as_an_operation_that_can_be_undone(server: Server, root: Path):
    (root / "old.txt").write_bytes(b"old")
    changes = {"a.txt": b"uno\r\n\xff", "dir/b.txt": b"", "old.txt": None}
    pushed = await push_edits(server, root, changes, label="Three files")
    told = await resolve(server, "apply", id=pushed.action_id, reason="Looks right.")
    assert {key: told[key] for key in told if key not in ("source_result", "operation_id", "pending_actions")} == {
        "action": "apply", "outcome": "applied", "id": pushed.action_id, "label": "Three files",
        "source_tool_name": "ast_edit", "reason": "Looks right.", "text": "Applied: Three files", "remaining": 0,
        "next": None, "replayed": False,
    }
    assert told["source_result"]["status"] == "applied"
    assert (root / "a.txt").read_bytes() == b"uno\r\n\xff"
    assert (root / "dir" / "b.txt").read_bytes() == b""
    assert not (root / "old.txt").exists()
    report = await ask(server, ReportOperation(operation_id=told["operation_id"]))
    assert (report["source"], report["status"]) == ("ast_edit", "applied")
    undone = await ask(server, RevertOperation(operation_id=told["operation_id"]))
    assert undone["status"] == "applied"
    assert (root / "a.txt").read_bytes() == b"one\r\n"
    assert (root / "old.txt").read_bytes() == b"old"
    assert not (root / "dir").exists()


async def test_one_file_that_has_changed_makes_the_whole_preview_stale(server: Server, root: Path):
    (root / "b.txt").write_bytes(b"b")
    pushed = await push_edits(server, root, {"a.txt": b"uno", "b.txt": b"dos", "c.txt": b"tres"})
    (root / "b.txt").write_bytes(b"changed")
    (root / "c.txt").write_bytes(b"there now")
    told = await resolve(server)
    assert told["code"] == "STALE_PREVIEW"
    assert told["message"].startswith("Preview is stale: b.txt, c.txt have changed")
    assert (told["detail"]["outcome"], told["detail"]["remaining"]) == ("failed", 0)
    assert [each["path"] for each in told["detail"]["changed"]] == ["b.txt", "c.txt"]
    found = [(root / name).read_bytes() for name in ("a.txt", "b.txt", "c.txt")]
    assert found == [b"one\r\n", b"changed", b"there now"]
    assert await waiting(server) == []
    again = await resolve(server, id=pushed.action_id)
    assert (again["code"], again["detail"]["replayed"]) == ("STALE_PREVIEW", True)


@pytest.mark.parametrize("instead", ["directory", "link", "gone"])
async def test_what_is_no_file_any_more_is_stale_too(server: Server, root: Path, instead: str):
    await push_edits(server, root, {"a.txt": b"uno"})
    (root / "a.txt").unlink()
    if instead == "directory":
        (root / "a.txt").mkdir()
    elif instead == "link":
        (root / "other.txt").write_bytes(b"one\r\n")
        (root / "a.txt").symlink_to("other.txt")
    told = await resolve(server)
    assert told["code"] == "STALE_PREVIEW"


async def test_applying_the_newer_of_two_edits_of_one_file_makes_the_older_stale(server: Server, root: Path):
    await push_edits(server, root, {"a.txt": b"first"}, label="older")
    await push_edits(server, root, {"a.txt": b"second"}, label="newer")
    told = await resolve(server)
    assert (told["label"], told["remaining"], told["next"]["label"]) == ("newer", 1, "older")
    assert (await resolve(server))["code"] == "STALE_PREVIEW"
    assert (root / "a.txt").read_bytes() == b"second"


async def test_a_path_that_is_protected_by_now_is_refused_and_waits_again(server: Server, root: Path, tmp_path: Path):
    await push_edits(server, root, {"a.txt": b"uno"})
    async with Server(tmp_path, {"demo": root}, protected_paths=("*.txt",)) as strict:
        told = await resolve(strict)
    assert (told["code"], told["detail"]["cause"], told["detail"]["outcome"]) == (
        "APPLY_FAILED", "PATH_PROTECTED", "returned",
    )
    assert await waiting(server) == ["Edit"]
    assert (await resolve(server))["outcome"] == "applied"


async def test_the_mode_of_a_file_stays_and_a_new_one_is_plain(server: Server, root: Path):
    (root / "a.txt").chmod(0o755)
    await push_edits(server, root, {"a.txt": b"uno", "n.txt": b"n"})
    await resolve(server)
    assert (root / "a.txt").stat().st_mode & 0o777 == 0o755
    assert (root / "n.txt").stat().st_mode & 0o777 == 0o644


# Discard


async def test_a_discard_says_so_in_the_contracts_words_and_changes_nothing(server: Server, root: Path):
    pushed = await push_edits(server, root, {"a.txt": b"uno"}, label="Rename all")
    told = await resolve(server, "discard", reason="Not now.", extra={"n": [1]})
    assert (told["outcome"], told["text"]) == ("discarded", "Discarded: Rename all. Reason: Not now.")
    assert (told["extra"], told["id"]) == ({"n": [1]}, pushed.action_id)
    assert (root / "a.txt").read_bytes() == b"one\r\n"
    assert "operation_id" not in told


async def test_reject_says_what_it_wants_and_the_contracts_words_where_it_says_nothing(
    server: Server, host: FakeToolHost
):
    async def says(call):
        return CallbackResult("Cleaned up.", {"reason": call.reason})

    async def says_nothing(_call):
        return None

    host.rejects = {"says": says, "silent": says_nothing}
    await push_handler(server, "silent", label="B")
    await push_handler(server, "says", label="A")
    told = await resolve(server, "discard", reason="No.")
    assert told["text"] == "Cleaned up."
    assert told["source_result"] == {"text": "Cleaned up.", "details": {"reason": "No."}}
    assert (await resolve(server, "discard"))["text"] == "Discarded: B. Reason: "


async def test_a_reject_that_raises_is_told_and_the_action_is_over_all_the_same(server: Server, host: FakeToolHost):
    host.rejects["x"] = raises(CallbackRaisedError("can't tidy"))
    pushed = await push_handler(server, "x")
    told = await resolve(server, "discard", reason="No.")
    assert (told["outcome"], told["error"]["message"]) == ("discarded", "Reject failed: can't tidy")
    assert await waiting(server) == []
    again = await resolve(server, "discard", id=pushed.action_id)
    assert (again["error"], again["replayed"]) == (told["error"], True)


# Callbacks


async def test_a_callback_is_given_reason_payload_and_extra_and_its_result_comes_back(
    server: Server, host: FakeToolHost
):
    host.handlers["go"] = returns("went", details={"n": 1})
    pushed = await push_handler(server, "go", {"to": ["ü"]}, label="Go", details={"asked": True})
    told = await resolve(server, "apply", reason="Go on.", extra={"x": 1})
    call = host.calls[-1]
    assert (call.reason, call.payload, call.extra) == ("Go on.", {"to": ["ü"]}, {"x": 1})
    assert call.action_id == pushed.action_id
    assert (told["text"], told["source_result"]) == ("Applied: Go\nwent", {"text": "went", "details": {"n": 1}})
    assert (told["details"], told["extra"]) == ({"asked": True}, {"x": 1})
    assert host.forgotten == [pushed.action_id]


async def test_what_a_callback_writes_is_a_custom_tools_whatever_name_it_gives_itself(
    server: Server, host: FakeToolHost
):
    host.handlers["go"] = returns("done", patches=(adds("n.txt"),))
    await push_handler(server, "go", tool="ast_edit")
    told = await resolve(server)
    minted = (await server.world.log.read_stream(told["operation_id"]))[0].event
    assert isinstance(minted, OperationMinted)
    assert (minted.source, minted.source_tool_name) == ("custom_tool", "ast_edit")
    report = await ask(server, ReportOperation(operation_id=told["operation_id"]))
    assert report["source"] == "custom_tool", "a name of ours is believed of nobody else"


async def test_an_apply_that_raises_is_on_top_again_under_its_id_and_can_be_applied_again(
    server: Server, host: FakeToolHost
):
    host.handlers["go"] = raises(CallbackRaisedError("no network"))
    pushed = await push_handler(server, "go")
    told = await resolve(server)
    assert (told["code"], told["message"]) == ("APPLY_FAILED", "Apply failed: no network")
    assert (told["detail"]["outcome"], told["detail"]["remaining"], told["detail"]["next"]["id"]) == (
        "returned", 1, pushed.action_id,
    )
    host.handlers["go"] = returns()
    assert (await resolve(server, id=pushed.action_id))["outcome"] == "applied"
    assert len(host.calls) == 2


async def test_a_closure_is_kept_as_long_as_its_action_may_be_applied_again(server: Server, host: FakeToolHost):
    pushed = await push_closure(server, host, raises(CallbackRaisedError("no network")))
    for _ in range(2):
        told = await resolve(server, id=pushed.action_id)
        assert (told["message"], told["detail"]["outcome"]) == ("Apply failed: no network", "returned")
    host.closures[pushed.action_id] = returns("done", patches=(adds("a.txt"),))
    assert (await resolve(server, id=pushed.action_id))["detail"]["cause"] == "ADD_FILE_EXISTS"
    assert host.forgotten == []
    host.closures[pushed.action_id] = returns("done", patches=(adds("n.txt"),))
    assert (await resolve(server, id=pushed.action_id))["outcome"] == "applied"
    assert host.forgotten == [pushed.action_id], "whatever ended it"


async def test_a_closure_is_let_go_with_a_discard(server: Server, host: FakeToolHost):
    pushed = await push_closure(server, host, returns())
    assert (await resolve(server, "discard"))["outcome"] == "discarded"
    assert host.forgotten == [pushed.action_id]


async def test_an_apply_that_returns_an_error_is_over(server: Server, host: FakeToolHost, root: Path):
    host.handlers["go"] = returns("the world has moved on", is_error=True, patches=(adds("never.txt"),))
    await push_handler(server, "go")
    told = await resolve(server)
    assert (told["code"], told["message"], told["detail"]["outcome"]) == (
        "APPLY_FAILED", "Apply failed: the world has moved on", "failed",
    )
    assert not (root / "never.txt").exists()
    assert (await resolve(server))["code"] == "NO_PENDING_ACTION"


async def test_all_patches_that_a_callback_stages_are_one_operation(server: Server, host: FakeToolHost, root: Path):
    update = "*** Begin Patch\n*** Update File: n.txt\n@@\n-new\n+newer\n*** End Patch\n"
    host.handlers["go"] = returns("renamed", patches=(adds("n.txt"), adds("dir/m.txt"), update))
    await push_handler(server, "go", tool="rename", work_id="work-1")
    told = await resolve(server)
    assert ((root / "n.txt").read_text(), (root / "dir" / "m.txt").read_text()) == ("newer\n", "new\n")
    report = await ask(server, ReportOperation(operation_id=told["operation_id"]))
    assert (report["source"], report["work_id"]) == ("rename", "work-1")
    assert sorted(report["files"]) == ["dir/m.txt", "n.txt"]
    assert told["operation_id"] == host.calls[-1].effect_id


async def test_a_staged_patch_that_does_not_fit_writes_nothing_and_returns_the_action(
    server: Server, host: FakeToolHost, root: Path
):
    host.handlers["go"] = returns("renamed", patches=(adds("n.txt"), adds("a.txt")))
    await push_handler(server, "go")
    told = await resolve(server)
    assert (told["code"], told["detail"]["cause"], told["detail"]["outcome"]) == (
        "APPLY_FAILED", "ADD_FILE_EXISTS", "returned",
    )
    assert told["operation_id"]
    assert not (root / "n.txt").exists()
    assert await waiting(server) == ["Do it"]


@pytest.mark.parametrize("way", ["raise", "patch"])
async def test_what_has_done_more_than_staging_is_never_run_again(server: Server, host: FakeToolHost, way: str):
    host.handlers["go"] = {
        "raise": raises(CallbackRaisedError("half-way", is_external=True)),
        "patch": returns(patches=(adds("a.txt"),), is_external=True),
    }[way]
    await push_handler(server, "go")
    told = await resolve(server)
    assert (told["code"], told["detail"]["outcome"]) == ("APPLY_FAILED", "failed")
    assert await waiting(server) == []


async def test_a_push_from_within_an_apply_is_the_new_top(server: Server, host: FakeToolHost):
    async def stages_more(call):
        await push_handler(server, "go", label="inner")
        return CallbackResult("staged more")

    await push_closure(server, host, returns(), label="below")
    await push_closure(server, host, stages_more, label="outer")
    told = await resolve(server)
    assert (told["label"], told["remaining"], told["next"]["label"]) == ("outer", 2, "inner")
    assert await waiting(server) == ["below", "inner"]


async def test_an_apply_that_pushes_and_raises_is_above_what_it_has_pushed(server: Server, host: FakeToolHost):
    async def stages_and_raises(call):
        await push_handler(server, "go", label="inner")
        raise CallbackRaisedError("but no")

    await push_closure(server, host, stages_and_raises, label="outer")
    assert (await resolve(server))["detail"]["remaining"] == 2
    assert await waiting(server) == ["inner", "outer"]


async def test_a_closure_whose_host_is_gone_is_orphaned_and_a_handler_that_is_not_here_waits(
    server: Server, host: FakeToolHost
):
    await push_handler(server, "not loaded", label="durable")
    pushed = await push_closure(server, host, returns(), label="closure")
    host.closures.clear()
    told = await resolve(server)
    assert (told["code"], told["detail"]["outcome"], told["detail"]["remaining"]) == ("APPLY_FAILED", "orphaned", 1)
    assert (await resolve(server))["detail"]["outcome"] == "returned"
    assert await waiting(server) == ["durable"]
    assert (await resolve(server, "discard"))["outcome"] == "discarded"
    assert (await resolve(server, id=pushed.action_id))["detail"]["outcome"] == "orphaned"


async def test_a_callback_that_fails_unexpectedly_leaves_its_action_on_the_stack(server: Server, host: FakeToolHost):
    host.handlers["go"] = raises(RuntimeError("a bug in the host"))
    await push_handler(server, "go")
    with pytest.raises(RuntimeError, match="a bug"):
        await resolve(server)
    assert await waiting(server) == ["Do it"]
    host.handlers["go"] = returns()
    assert (await resolve(server))["outcome"] == "applied"


# Ids and replays


async def test_an_id_that_is_not_on_top_is_refused_naming_what_waits(server: Server, host: FakeToolHost):
    below = await push_closure(server, host, returns(), label="below")
    top = await push_closure(server, host, returns(), label="top")
    for named in (below.action_id, "act-nonsense", "op-1"):
        told = await resolve(server, id=named)
        assert (told["code"], told["detail"]["pending"]) == (
            "PENDING_ACTION_MISMATCH", [top.action_id, below.action_id],
        ), named
    assert host.calls == []


@pytest.mark.parametrize("action", ["apply", "discard"])
async def test_an_id_that_is_resolved_already_is_answered_with_its_outcome(
    server: Server, host: FakeToolHost, action: str, root: Path, tmp_path: Path
):
    pushed = await push_edits(server, root, {"a.txt": b"uno"})
    told = await resolve(server, action, id=pushed.action_id, reason="r", extra={"x": 1})
    await push_closure(server, host, returns(), label="another")
    async with Server(tmp_path, {"demo": root}) as second:
        for place in (server, second):
            again = await resolve(place, "apply", id=pushed.action_id)
            again.pop("pending_actions")
            assert again == {key: value for key, value in told.items() if key != "pending_actions"} | {"replayed": True}
    recorded = (await stack_of(server)).recorded
    assert sum(each.topic == "pending.action_popped.v1" for each in recorded) == 1


@pytest.mark.parametrize(("more", "field"), [
    ({"reason": "x" * 5_000}, "reason"), ({"reason": "\ud800"}, "reason"), ({"work_id": "w" * 201}, "work_id"),
    ({"extra": {"x": "y" * 1_100_000}}, "extra"), ({"extra": {"x": "\ud800"}}, "extra"),
])
async def test_what_cannot_be_recorded_is_refused_before_anything_is_done(
    server: Server, host: FakeToolHost, more: dict, field: str
):
    await push_closure(server, host, returns())
    told = await resolve(server, **more)
    assert (told["code"], told["detail"]["field"]) == ("INVALID_ARGUMENT", field)
    assert await waiting(server) == ["Do it"]


async def test_apply_needs_the_right_to_write_and_discard_never(server: Server, root: Path, tmp_path: Path):
    await push_edits(server, root, {"a.txt": b"uno"})
    async with Server(tmp_path, {"demo": root}, profile="read-only") as reader:
        assert (await resolve(reader))["code"] == "UNAUTHORIZED"
        assert (await resolve(reader, "discard"))["outcome"] == "discarded"


# The list


async def test_the_list_tells_each_action_with_the_next_first(server: Server, host: FakeToolHost, root: Path):
    await push_edits(server, root, {"a.txt": b"uno"}, label="older")
    await push_closure(server, host, returns(), label="newer", details={"n": 1})
    await push_handler(server, "go", label="elsewhere", work_id="work-1")
    actions = (await ask(server, ListPending()))["actions"]
    assert [(each["label"], each["is_next"], each["is_durable"]) for each in actions] == [
        ("newer", True, False), ("older", False, True), ("elsewhere", True, True),
    ]
    assert actions[0]["details"] == {"n": 1}
    assert actions[1]["files"][0]["path"] == "a.txt"
    assert actions[2]["work_id"] == "work-1"
