"""Power cuts under a whole server: log and files are cut at the same moment, and after it they tell one story.

The cuts are made at every fault point of a story of patches, an undo and a command, and after every answer. Each is
then brought back, settled by a new server, and asked for everything again: what was answered stands, in the log and in
the files; what was under way is all there or not at all; the log verifies. That the sweep can fail is shown by taking
the flushes of the log away, and those of the files. Source: reliability paper, T6 and T7.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import ExitStack, aclosing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
import pytest

from adapters.log.reader import LogReader
from adapters.log.sqlite import database
from adapters.patch_writer import scene
from codespace_es.command_handlers.patching import ApplyPatch
from codespace_es.command_handlers.reverting import RevertOperation
from codespace_es.event_catalogue import CATALOGUE
from codespace_es.invocation import ExecCommand
from codespace_es.ports.fault_points import FaultHook, FaultPoint, no_faults
from codespace_es.ports.log import StoreUnavailableError
from codespace_es.vocabulary.answer import Command
from codespace_es.vocabulary.errors import CodespaceError
from replay.verify import verify
from replay.workspace_check import check_workspace
from support.commands import lines_of
from support.crash_faults import count
from support.crash_orders import Snapshot, snapshot
from support.loop_disk import Cut, LoopDisk, loop_disk
from support.server import Server

pytestmark = pytest.mark.anyio

STRIDE = 6
"""Of the moments between answers, every n-th is brought back; the soak brings back all."""
DISK_BYTES = 12 * 1024 * 1024
COUNTED = "count"
"""The file that the command writes, which nobody flushes."""

_EDIT = "*** Begin Patch\n*** Update File: a.txt\n@@\n-{}\n+{}\n*** Add File: new/{}.txt\n+fresh\n*** End Patch\n"


def story(answers: list[dict[str, Any]]) -> Iterator[Command]:
    """Yield one request after the other; the undo names the first answer's operation."""
    yield ApplyPatch(workspace_id="ws", patch=_EDIT.format("one", "two", "b"), operation_key="first")
    yield ExecCommand(workspace_id="ws", command=["sh", "-c", f"echo x >> {COUNTED}"], operation_key="command")
    yield ApplyPatch(workspace_id="ws", patch="*** Begin Patch\n*** Delete File: gone.txt\n*** End Patch\n",
                     operation_key="second")
    yield RevertOperation(operation_id=answers[0]["operation_id"], operation_key="undo")


@dataclass
class Moment:
    """What the disks had at one moment, and how many answers had been given."""

    cuts: list[Cut]
    answered: int


@dataclass
class Lab:
    """Disks, the server that lives on them, and what it was seen to do."""

    disks: list[LoopDisk]
    moments: list[Moment] = field(default_factory=list)
    answers: list[dict[str, Any]] = field(default_factory=list)
    trees: list[Snapshot] = field(default_factory=list)
    """How the files were before the first request and after each."""

    @property
    def root(self) -> Path:
        return self.disks[0].root / "ws"

    @property
    def scratch(self) -> Path:
        return self.disks[-1].root

    def server(self) -> Server:
        return Server(self.scratch, {"ws": self.root}, sandbox="off")

    def tree(self) -> Snapshot:
        return {name: seen for name, seen in snapshot(self.root).items() if name != COUNTED}

    def cut(self, _point: FaultPoint | None = None) -> None:
        self.moments.append(Moment([disk.cut() for disk in self.disks], len(self.answers)))

    async def live(self, hook: FaultHook) -> None:
        """Have a server answer the story, with a cut after every answer; at fault points the hook is called."""
        self.root.mkdir()
        (self.root / "a.txt").write_text("one\n")
        (self.root / "gone.txt").write_text("bye\n")
        server = await self.server().start()
        self.trees.append(self.tree())
        for disk in self.disks:
            disk.begin()
        server.hook = hook
        for command in story(self.answers):
            self.answers.append((await server.handle(command)).to_wire())
            while len(server.world.live):
                await anyio.sleep(0.002)
            self.cut()
            self.trees.append(self.tree())
        server.hook = no_faults
        await server.die()

    async def wrong(self, stride: int = 1) -> AsyncGenerator[str]:
        """Bring back every n-th moment, and each one right after an answer; yield what isn't as it was told."""
        for number, moment in enumerate(self.moments):
            is_after_answer = moment.answered > (self.moments[number - 1].answered if number else 0)
            if number % stride and not is_after_answer:
                continue
            count("power cuts of log and files together", 1)
            for disk, cut in zip(self.disks, moment.cuts, strict=True):
                disk.unmount()
                disk.restore(cut)
                disk.mount()
            try:
                for problem in [each async for each in self._problems(moment)]:
                    yield f"cut {number} of {len(self.moments)}, after {moment.answered} answers: {problem}"
            except (CodespaceError, StoreUnavailableError, OSError, KeyError) as error:
                yield f"cut {number}, after {moment.answered} answers: {error!r}"

    async def _problems(self, moment: Moment) -> AsyncIterator[str]:
        ran = lines_of(self.root / COUNTED)
        told = self.answers[:moment.answered]
        async with self.server() as server:
            settled = self.tree()
            if settled not in self.trees[moment.answered:moment.answered + 2]:
                yield "the files are neither as before nor as after what was under way"
            for answer, command in zip(self.answers, story(self.answers), strict=False):
                again = (await server.handle(command)).to_wire()
                is_told = any(answer is each for each in told)
                if is_told and _lasting(again) != _lasting(answer):
                    yield f"answered {answer}, now {again}"
                if is_told and not again["replayed"]:
                    yield f"done again: {again}"
                if not is_told:
                    for problem in self._under_way(again, settled, moment, ran):
                        yield problem
                    break
            while len(server.world.live):
                await anyio.sleep(0.002)
            if lines_of(self.root / COUNTED) > 1:
                yield "the command ran twice"
        with LogReader(self.scratch / "data" / "codespace.db", CATALOGUE) as reader:
            for finding in verify(reader).findings:
                yield str(finding)
            for difference in check_workspace(reader, self.root).problems:
                yield str(difference)

    def _under_way(self, again: dict[str, Any], settled: Snapshot, moment: Moment, ran: int) -> Iterator[str]:
        """Compare what the first request without an answer came to with what was found of it."""
        is_new = not again.get("replayed")
        if "process_id" in again:
            if is_new and ran:
                yield "a command that the log doesn't know has run"
            return
        before, after = self.trees[moment.answered:moment.answered + 2]
        if is_new and (settled != before or self.tree() != after):
            yield "what the log doesn't know has changed files"
        if not is_new and settled != (after if again["status"] == "applied" else before):
            yield f"it is said to be {again['status']}, which the files aren't"


def _lasting(answer: dict[str, Any]) -> dict[str, Any]:
    """Return what may never change of an answer: a repeat says less, never more, and nothing else."""
    return {name: answer.get(name) for name in ("operation_id", "process_id", "status")}


@pytest.fixture(params=["one disk", "a disk each"])
def lab(request: pytest.FixtureRequest, memory_path: Path) -> Iterator[Lab]:
    with ExitStack() as stack:
        names = ["tree"] if request.param == "one disk" else ["tree", "log"]
        yield Lab([stack.enter_context(loop_disk(memory_path, name, DISK_BYTES)) for name in names])


OUTCOMES = ["applied", "ran", "applied", "applied"]


async def is_noticed(lab: Lab) -> bool:
    """Return whether cuts after the answers alone show that something is wrong."""
    await lab.live(no_faults)
    async with aclosing(lab.wrong()) as problems:
        async for _problem in problems:
            return True
    return False


@pytest.mark.parametrize("stride", [STRIDE, pytest.param(1, marks=pytest.mark.soak)], ids=["some", "all"])
async def test_a_power_cut_at_any_moment_leaves_log_and_files_telling_one_story(lab: Lab, stride: int) -> None:
    await lab.live(lab.cut)
    assert [answer.get("status", "ran") for answer in lab.answers] == OUTCOMES
    assert len(lab.moments) > 60
    assert [problem async for problem in lab.wrong(stride)] == []


async def test_without_the_flush_of_the_log_a_power_cut_is_noticed(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    """T7: NORMAL flushes at checkpoints only, so what was answered may be gone."""
    connect = database.connect_writer

    def connect_carelessly(path: Path) -> Any:
        connection = connect(path)
        connection.execute("PRAGMA synchronous = NORMAL")
        return connection

    monkeypatch.setattr(database, "connect_writer", connect_carelessly)
    assert await is_noticed(lab)


@pytest.mark.parametrize("lab", ["a disk each"], indirect=True)
async def test_without_the_flush_of_directories_a_power_cut_is_noticed(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    """T7, where no flush of the log carries the names along with it."""
    monkeypatch.setattr(scene, "sync_directory", lambda descriptor: None)
    assert await is_noticed(lab)
