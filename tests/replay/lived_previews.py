"""Pending actions as real handlers write them: one of each fate, so that a stored log has every topic of them.

`python tests/replay/lived_previews.py DIRECTORY` writes it; do it once a release, beside `stored_log.py`.
"""

import sys
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
if __name__ == "__main__":
    sys.path[:0] = [str(REPOSITORY / each) for each in ("", "src", "tests", "tests/replay")]

from stored_log import store_life  # noqa: E402

from codespace_es.command_handlers.calling_back import begin_effect  # noqa: E402
from codespace_es.ports.tool_host import ActionCall, CallbackRaisedError, CallbackResult  # noqa: E402
from support.holds import grant, resume  # noqa: E402
from support.pending import (  # noqa: E402
    CALLER,
    FakeToolHost,
    adds,
    push_closure,
    push_edits,
    push_handler,
    raises,
    resolve,
    returns,
    session_of,
)
from support.server import Server  # noqa: E402


async def live(scratch: Path, root: Path) -> None:
    """Write it: applied, stale, discarded, by a callback, raised, what can't be taken back, held, orphaned, waiting."""
    (root / "a.txt").write_text("a")
    host = FakeToolHost({"go": returns(patches=(adds("n.txt"),)), "no": raises(CallbackRaisedError("no"))})
    async with Server(scratch, {"demo": root}, tool_host=host) as server:
        await push_edits(server, root, {"a.txt": b"b"})
        await resolve(server)
        await push_edits(server, root, {"a.txt": b"c"})
        (root / "a.txt").write_text("changed")
        await resolve(server)
        await push_edits(server, root, {"a.txt": b"d"})
        await resolve(server, "discard", reason="No need.")
        await push_handler(server, "go", {"n": 1}, work_id="w1", details={"n": 1})
        await resolve(server, extra={"x": 1})
        await push_handler(server, "no")
        await resolve(server)
        await resolve(server, "discard")

        async def begins(call: ActionCall) -> CallbackResult:
            await begin_effect(server.world, session_of(server), call.action_id, CALLER)
            return CallbackResult("ran", is_external=True)

        host.handlers["begins"] = begins
        await push_handler(server, "begins")
        await resolve(server)
        await push_closure(server, host, returns())
    async with Server(scratch, {"demo": root}, tool_host=host, approvals="confirm") as server:
        await push_edits(server, root, {"a.txt": b"e"})
        held = (await resolve(server))["approval_id"]
        await grant(server, held)
        await resume(server, held)
        await push_edits(server, root, {"a.txt": b"f"})
        await grant(server, (await resolve(server))["approval_id"])
        await resolve(server, "discard")
        await push_edits(server, root, {"a.txt": b"g"})


if __name__ == "__main__":
    store_life(live, Path(sys.argv[1]), "previews")
