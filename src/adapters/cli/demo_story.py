"""The story that the demo tells, chapter by chapter: each call a real one, each claim checked."""

from collections.abc import Iterator, Mapping
from typing import Any

import anyio
from mcp import Client
from mcp.shared.exceptions import MCPError

from adapters.cli.demo_commands import play_commands
from adapters.cli.demo_stage import Stage, short_version
from codespace_es.ports.fault_points import FaultPoint
from codespace_es.ports.log import StoreUnavailableError

_GREETING = 'def greet(name):\n    return "Hello, " + name\n'
_FAREWELL = 'def part(name):\n    return "Bye, " + name\n'
_FRIENDLIER = """\
*** Begin Patch
*** Update File: greeting.py
@@ def greet(name):
-    return "Hello, " + name
+    return f"Hello, {name}!"
*** End Patch
"""
_OTHER = """\
*** Begin Patch
*** Update File: greeting.py
@@ def greet(name):
-    return "Hello, " + name
+    return "Hi, " + name
*** End Patch
"""
_BOTH = """\
*** Begin Patch
*** Update File: farewell.py
@@ def part(name):
-    return "Bye, " + name
+    return f"Bye, {name}!"
*** Update File: greeting.py
@@ def greet(name):
-    return "Hello, " + name
+    return f"Hello, {name}!"
*** End Patch
"""
_SECONDS_MAX = 120
_KEY = "friendlier-greeting"
_CRASH_KEY = "friendlier-everything"


async def play_to_the_end(stage: Stage) -> None:
    """Tell the story on `stage`; where it breaks off, that is a claim that didn't hold."""
    try:
        with anyio.fail_after(_SECONDS_MAX):
            await _play(stage)
    except* (MCPError, KeyError, OSError, StoreUnavailableError) as broken:
        causes = {f"{type(error).__name__}: {error}" for error in leaves(broken)}
        stage.check(False, f"The story broke off ({'; '.join(sorted(causes))}).")


def leaves(group: BaseExceptionGroup[BaseException]) -> Iterator[BaseException]:
    """Yield the errors that `group` holds, however deep."""
    for error in group.exceptions:
        if isinstance(error, BaseExceptionGroup):
            yield from leaves(error)
        else:
            yield error


async def _play(stage: Stage) -> None:
    (stage.project / "greeting.py").write_text(_GREETING, encoding="utf-8")
    (stage.project / "farewell.py").write_text(_FAREWELL, encoding="utf-8")
    stage.say("An agent never writes your files itself: it asks this server, and every decision is an event in an "
              "append-only log before and after it happens. This is a scratch project; you see each call (→), its "
              "answer (←), and the events that it left, with their positions.")
    async with stage.server() as client:
        version = await _look(stage, client)
        await _preview(stage, client, version)
        operation_id = await _apply(stage, client, version)
        await _repeat(stage, client, version, operation_id)
        await _go_stale(stage, client, version)
        await _undo(stage, client, operation_id, version)
    await _crash(stage)
    await _recover(stage)
    _verify(stage)


async def _look(stage: Stage, client: Client) -> str:
    stage.chapter("Look", "The agent finds its way. Reading locks nothing and leaves no event; what is read has a "
                          "version, the hash of the whole file.")
    found = await stage.call(client, "find", glob="*.py")
    stage.answer(", ".join(found["paths"]))
    searched = await stage.call(client, "search", pattern="Hello")
    match = searched["matches"][0]
    stage.answer(f"{match['path']}, line {match['line']}: {match['text'].strip()}")
    read = await stage.call(client, "read", path="greeting.py")
    stage.answer(f"{read['byte_count']} bytes, version {short_version(read['version'])}")
    events = stage.events()
    stage.check(read["content"] == _GREETING, "The file was read as it is.")
    stage.check(all(event.topic.split(".")[0] in ("store", "instance") for event in events),
                "Looking left no event: only the log and the server have begun.")
    return str(read["version"])


async def _preview(stage: Stage, client: Client, version: str) -> None:
    stage.chapter("Preview", "A patch in the V4A format, with the version that it was made for. First it only asks "
                             "what would change.")
    told = await stage.call(client, "apply_patch", patch=_FRIENDLIER, expected_versions={"greeting.py": version},
                            check_only=True)
    stage.answer(f"{told['status']}: {told['changes'][0]['path']} {told['changes'][0]['summary']}")
    stage.listing(told["diff"])
    stage.events()
    stage.check(told["status"] == "checked" and stage.file("greeting.py") == _GREETING, "Nothing was written.")


async def _apply(stage: Stage, client: Client, version: str) -> str:
    stage.chapter("Apply", "The same patch for real, under a key that the agent chose. The plan and both images of "
                           "the file are durable before the first byte is written.")
    told = await _apply_friendlier(stage, client, version)
    stage.answer(f"{told['status']}, {told['operation_id']}")
    stage.listing(stage.file("greeting.py"))
    stage.events()
    stage.check(told["status"] == "applied" and "{name}!" in stage.file("greeting.py"), "The file has changed.")
    return str(told["operation_id"])


async def _repeat(stage: Stage, client: Client, version: str, operation_id: str) -> None:
    stage.chapter("Repeat", "The answer was lost on its way, say, and the agent sends the same call again. The key "
                            "finds the stored answer; nothing runs twice.")
    told = await _apply_friendlier(stage, client, version)
    stage.answer(f"{told['status']}, {told['operation_id']}, replayed: {str(told['replayed']).lower()}")
    events = stage.events()
    stage.check(bool(told["replayed"]) and told["operation_id"] == operation_id,
                "The same operation, not a second one.")
    stage.check(not events, "No event was added.")


async def _apply_friendlier(stage: Stage, client: Client, version: str) -> Mapping[str, Any]:
    return await stage.call(client, "apply_patch", patch=_FRIENDLIER, operation_key=_KEY,
                            expected_versions={"greeting.py": version})


async def _go_stale(stage: Stage, client: Client, version: str) -> None:
    stage.chapter("Go stale", "Another agent still believes in the old file. Its patch is refused, with what to do "
                              "next, and the refusal is on record.")
    told = await stage.call(client, "apply_patch", patch=_OTHER, expected_versions={"greeting.py": version})
    stage.answer(f"{told['code']}: {told['message']}")
    stage.answer(str(told["remedy"]))
    stage.events()
    stage.check(told["code"] == "VERSION_CONFLICT" and "{name}!" in stage.file("greeting.py"),
                "The newer content is untouched.")


async def _undo(stage: Stage, client: Client, operation_id: str, version: str) -> None:
    stage.chapter("Undo", "An applied operation can be undone while its files are as it left them. The undo is an "
                          "operation too.")
    told = await stage.call(client, "operation_revert", operation_id=operation_id)
    stage.answer(f"{told['status']}, {told['operation_id']}")
    stage.events()
    read = await stage.call(client, "read", path="greeting.py")
    stage.check(told["status"] == "applied" and read["version"] == version,
                "The file is what it was, byte for byte.")


async def _crash(stage: Stage) -> None:
    stage.events()
    stage.chapter("Crash", "A patch of two files; and in the middle of it, with one file changed on disk and the "
                           "other not yet, the server is killed (kill -9).")
    was_answered = True
    async with stage.server(dying_at=FaultPoint.INSTALL_SWAPPED) as client:
        try:
            await stage.call(client, "apply_patch", patch=_BOTH, operation_key=_CRASH_KEY)
        except MCPError as error:
            was_answered = False
            stage.answer(f"no answer: {error}")
    stage.events()
    is_half_done = (stage.file("farewell.py") == _FAREWELL) != (stage.file("greeting.py") == _GREETING)
    stage.check(not was_answered, "The server died without an answer; the operation is minted and not finished.")
    stage.check(is_half_done, "On disk the patch is half done.")


async def _recover(stage: Stage) -> None:
    stage.chapter("Recover", "A new server takes over. It knows from the log what was meant, finds by the hashes on "
                             "disk how far it came, puts back what was changed, and says so.")
    async with stage.server() as client:
        told = await stage.call(client, "operation_status", operation_key=_CRASH_KEY)
        stage.answer(f"{told['status']}, {told['operation_id']}")
        stage.events()
        stage.check(told["status"] == "failed_rolled_back", "The truth is told: it failed, and was rolled back.")
        stage.check(stage.file("farewell.py") == _FAREWELL and stage.file("greeting.py") == _GREETING,
                    "Both files are whole, and as they were.")
        again = await stage.call(client, "apply_patch", patch=_BOTH, operation_key=_CRASH_KEY)
        stage.answer(f"{again['status']}, replayed: {str(again['replayed']).lower()}")
        stage.check(bool(again["replayed"]) and again["operation_id"] == told["operation_id"],
                    "The same key again: the stored answer. A new attempt takes a new key.")
        stage.check(sorted(each.name for each in stage.project.iterdir()) == ["farewell.py", "greeting.py"],
                    "No temporary file is left behind.")
        await play_commands(stage, client)


def _verify(stage: Stage) -> None:
    stage.events()
    stage.chapter("Verify", "An audit that can't act reads the log alone: the chain of hashes, every stream, every "
                            "stored content, the list of what is open.")
    report = stage.verify()
    stage.answer(f"{report.events} events, {report.bodies} stored contents, {report.open_items} open, "
                 f"head {report.head_position}:{report.head_hash[:12]}…")
    stage.check(report.is_ok, "The log is whole and unchanged.")
    stage.check(report.open_items == 0, "Nothing is left open.")
