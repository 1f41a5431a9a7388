"""A history made from a list of moves, written by real adapter and deciders, and what was so at each of its moments.

A moment is noted as a server sees it while it writes: by its own reads, and by the list of what is open that the log
keeps. An audit that looks back later has to say the same.
"""

from collections.abc import Sequence
from contextlib import AsyncExitStack
from typing import Any, Literal, NamedTuple

from hypothesis import strategies as st
from scripted_log import ScriptedServer, open_server

from adapters.log.places import LogPlace
from codespace_es.ports.log import OpenItem
from codespace_es.vocabulary.file_change import digest_of
from codespace_es.vocabulary.identifiers import InstanceId, OperationId, StreamId
from replay.memory import DECIDERS
from replay.state_at import facts_of

Tree = dict[str, tuple[bytes | None, bytes | None]]
"""What a patch does: path to content before and after."""

Kind = Literal["patch", "begin", "fail", "reject", "check", "undo", "refuse", "prune", "stop", "crash"]


class Move(NamedTuple):
    """What happens next; what can't happen as things are is left out."""

    kind: Kind
    path: str
    content: bytes | None
    has_key: bool


MOVES = st.lists(st.builds(
    Move, kind=st.sampled_from(Kind.__args__), path=st.sampled_from(["a.txt", "b/c.txt", "d e\u00e9.txt"]),
    content=st.sampled_from([None, b"", b"one\n", b"two\n", b"\x00\xff", b"long\n" * 500]), has_key=st.booleans(),
), min_size=1, max_size=14)


class Moment(NamedTuple):
    """What was so when a position was the newest."""

    position: int
    states: dict[str, tuple[str, dict[str, Any], int]]
    """Name, facts and version of each stream's state."""
    open: Sequence[OpenItem]


class History:
    """Plays moves, one server after the other, and keeps the moments."""

    def __init__(self, place: LogPlace) -> None:
        self.moments: list[Moment] = []
        self._place = place
        self._servers = 0
        self._server: ScriptedServer
        self._life = AsyncExitStack()
        self._dead: InstanceId | None = None
        self._tree: dict[str, bytes] = {}
        self._begun: tuple[OperationId, Tree] | None = None
        self._applied: list[tuple[OperationId, Tree]] = []
        self._keys = 0
        self._known: dict[str, None] = {}

    async def play(self, moves: Sequence[Move]) -> None:
        """Let it all happen, and leave the last server as a kill would."""
        await self._start()
        for move in moves:
            await self._make(move)
            await self._note()
        await self._life.aclose()

    async def _start(self) -> None:
        self._servers += 1
        self._server = await self._life.enter_async_context(open_server(self._place, number=self._servers))
        await self._server.start()
        if self._dead is not None:
            closed = await self._end("failed_rolled_back")
            await self._server.recover(self._dead, operations_closed=closed)
            self._dead = None

    async def _make(self, move: Move) -> None:
        match move.kind:
            case "patch" | "begin" | "fail" | "check":
                await self._patch(move)
            case "reject":
                await self._server.reject(key=self._key(move))
            case "undo":
                await self._undo()
            case "refuse":
                await self._server.refuse_call()
            case "prune":
                await self._prune()
            case "stop" | "crash":
                if move.kind == "stop":
                    await self._end("applied")
                    await self._server.stop()
                else:
                    self._dead = self._server.instance_id
                await self._life.aclose()
                await self._start()

    async def _patch(self, move: Move) -> None:
        await self._end("applied")
        before = self._tree.get(move.path)
        if before == move.content:
            return
        files: Tree = {move.path: (before, move.content)}
        if move.kind == "check":
            await self._server.check(files)
            return
        self._begun = await self._server.mint(files, key=self._key(move)), files
        if move.kind != "begin":
            await self._end("applied" if move.kind == "patch" else "failed_rolled_back")

    async def _undo(self) -> None:
        await self._end("applied")
        if not self._applied:
            return
        operation, files = self._applied.pop()
        back = {path: (after, before) for path, (before, after) in files.items()}
        if all(self._tree.get(path) == now for path, (now, _) in back.items()):
            self._begun = await self._server.mint(back, reverts=operation), back
            await self._end("applied")

    async def _prune(self) -> None:
        await self._end("applied")
        if not self._applied:
            return
        operation, files = self._applied.pop(0)
        images = sorted({content for sides in files.values() for content in sides if content is not None})
        await self._server.remove_bodies(
            [(StreamId(operation), digest_of(image)) for image in images], total_bytes=sum(map(len, images)))

    async def _end(self, status: Literal["applied", "failed_rolled_back"]) -> int:
        """End the patch that was begun, if one was; return how many were."""
        if self._begun is None:
            return 0
        operation, files = self._begun
        self._begun = None
        await self._server.finish(operation, status=status)
        if status == "applied":
            self._applied.append((operation, files))
            for path, (_, after) in files.items():
                if after is None:
                    self._tree.pop(path)
                else:
                    self._tree[path] = after
        return 1

    def _key(self, move: Move) -> str | None:
        self._keys += 1
        return f"key-{self._keys}" if move.has_key else None

    async def _note(self) -> None:
        log = self._server.log
        after = self.moments[-1].position if self.moments else 0
        async for recorded in log.read_log(after=after):
            self._known[recorded.stream_id] = None
        states = {}
        for stream_id in self._known:
            past = await log.read_stream(StreamId(stream_id))
            state = DECIDERS[stream_id.partition("-")[0]].fold_recorded(past)
            states[stream_id] = (type(state).__name__, facts_of(state), past[-1].version)
        self.moments.append(Moment((await log.head())[0], states, await log.open_items()))
