"""Works as real handlers finish them: over a stack that was used, over one that was not, and a push behind it.

`python tests/replay/finishing_log.py DIRECTORY` writes it; do it once a release, beside `stored_log.py`.
"""

import sys
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
if __name__ == "__main__":
    sys.path[:0] = [str(REPOSITORY / each) for each in ("", "src", "tests", "tests/replay")]

from stored_log import store_life  # noqa: E402

from codespace_es.command_handlers.finishing import FinishWorkCommand  # noqa: E402
from codespace_es.command_handlers.steering import OpenWorkCommand  # noqa: E402
from support.holds import ask  # noqa: E402
from support.pending import push_edits, resolve  # noqa: E402
from support.server import Server  # noqa: E402


async def live(scratch: Path, root: Path) -> None:
    """Write it."""
    (root / "a.txt").write_text("a")
    async with Server(scratch, {"demo": root}) as server:
        works = [(await ask(server, OpenWorkCommand(workspace_id="demo")))["work_id"] for _ in range(2)]
        await push_edits(server, root, {"a.txt": b"b"}, work_id=works[0])
        assert (await ask(server, FinishWorkCommand(work_id=works[0])))["reason"] == "pending_actions"
        await resolve(server)
        for work_id in works:
            assert (await ask(server, FinishWorkCommand(work_id=work_id)))["closed"]
        await push_edits(server, root, {"a.txt": b"c"}, work_id=works[1])


if __name__ == "__main__":
    store_life(live, Path(sys.argv[1]), "finishing")
