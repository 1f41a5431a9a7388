"""A session as real handlers write it: several operations undone at one blow, and a server whose host was lost.

`python tests/replay/undoing_log.py DIRECTORY` writes it; do it once a release, beside `stored_log.py`.
"""

import sys
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
if __name__ == "__main__":
    sys.path[:0] = [str(REPOSITORY), str(REPOSITORY / "src"), str(REPOSITORY / "tests"),
                    str(REPOSITORY / "tests/replay")]

from stored_log import store_life  # noqa: E402

from codespace_es.aggregates.instance import INSTANCE, InstanceTakenOver, TakeOverInstance  # noqa: E402
from codespace_es.command_handlers.patching import ApplyPatch  # noqa: E402
from codespace_es.command_handlers.reverting import RevertOperation, RevertOperations  # noqa: E402
from codespace_es.folding import fold  # noqa: E402
from codespace_es.ports.log import Append  # noqa: E402
from codespace_es.vocabulary.event import Caller  # noqa: E402
from codespace_es.vocabulary.identifiers import RequestId  # noqa: E402
from support.holds import ask  # noqa: E402
from support.server import Server  # noqa: E402

PATCHES = (
    "*** Begin Patch\n*** Add File: deep/a.txt\n+one\n*** End Patch\n",
    "*** Begin Patch\n*** Update File: deep/a.txt\n*** Move to: b.txt\n@@\n-one\n+two\n*** End Patch\n",
)


async def live(path: Path, root: Path) -> None:
    """Write the session into `path`'s directory."""
    async with Server(path, {"demo": root}) as server:
        names = [
            (await ask(server, ApplyPatch(workspace_id="demo", patch=patch, operation_key=f"key-{number}")))
            ["operation_id"] for number, patch in enumerate(PATCHES)
        ]
        undone = await ask(server, RevertOperations(operation_id=names[0], also=(names[1],)))
        await ask(server, RevertOperation(operation_id=undone["operation_id"]))
        lost = await Server(path, {"demo": root}, settles_at_start=False).start()
        taken_over = TakeOverInstance(InstanceTakenOver(reason="its host burned down"))
        events = (await fold(server.world.log, INSTANCE, lost.world.instance_id)).decide(taken_over)
        await server.world.log.append(Append(events), Caller("cli", RequestId("req-1"), "tests/1"))
        await lost.die()


if __name__ == "__main__":
    store_life(live, Path(sys.argv[1]), "undoing")
