"""A session as real handlers write it: holds, commands and steering, so that a stored log has every topic of them.

`python tests/replay/lived_log.py DIRECTORY` writes it; do it once a release, beside `stored_log.py`.
"""

import sys
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
if __name__ == "__main__":
    sys.path[:0] = [str(REPOSITORY), str(REPOSITORY / "src"), str(REPOSITORY / "tests"),
                    str(REPOSITORY / "tests/replay")]

import anyio  # noqa: E402
from stored_log import store_life  # noqa: E402

from adapters.log.places import LogPlace  # noqa: E402
from codespace_es.command_handlers.deciding import CreateHold, ResolveHold  # noqa: E402
from codespace_es.command_handlers.driving import ResizeTerminal, TerminateProcess, WriteInput  # noqa: E402
from codespace_es.command_handlers.finishing import FinishWorkCommand  # noqa: E402
from codespace_es.command_handlers.inbox import (  # noqa: E402
    CancelIntentCommand,
    EditIntentCommand,
    QueueIntentCommand,
    ReleaseIntentCommand,
    ReorderIntentsCommand,
    StopWorkCommand,
    WriteIntent,
)
from codespace_es.command_handlers.observing import AskProcess  # noqa: E402
from codespace_es.command_handlers.resuming import ResumeOperation  # noqa: E402
from codespace_es.command_handlers.steering import (  # noqa: E402
    ClaimNextCommand,
    CompleteIntentCommand,
    OpenWorkCommand,
)
from codespace_es.invocation import ExecCommand  # noqa: E402
from codespace_es.vocabulary.answer import Command  # noqa: E402
from codespace_es.vocabulary.errors import CodespaceError  # noqa: E402
from support.server import Server  # noqa: E402

PATCH = "*** Begin Patch\n*** Add File: {name}\n+hello\n*** End Patch\n"


class Session:
    """One server, spoken to in short."""

    def __init__(self, server: Server) -> None:
        self.server = server

    async def ask(self, command: Command) -> dict:
        return (await self.server.handle(command)).to_wire()

    async def refused(self, command: Command) -> None:
        try:
            await self.server.handle(command)
        except CodespaceError:
            return
        raise AssertionError(f"{command} was to be refused")

    def be(self, **policy: object) -> None:
        """Give the workspace another policy, as a restart with another configuration would."""
        workspaces = self.server.world.workspaces
        workspaces["demo"] = workspaces["demo"].model_copy(update=policy)  # type: ignore[index]  # a mapping that tests may write

    async def ended(self, process_id: str) -> None:
        with anyio.fail_after(20):
            while not (await self.ask(AskProcess(process_id=process_id)))["eof"]:
                await anyio.sleep(0.01)


async def live(path: Path, root: Path, place: LogPlace | None = None) -> None:
    """Write the session into `path`'s directory, or to `place`."""
    async with Server(path, {"demo": root}, place=place) as server:
        session = Session(server)
        await _hold(session)
        await _run(session)
        await _steer(session)


async def _hold(session: Session) -> None:
    async def held(name: str) -> str:
        arguments = {"workspace_id": "demo", "patch": PATCH.format(name=name), "expected_versions": {}}
        return str((await session.ask(CreateHold(tool="apply_patch", arguments=arguments)))["approval_id"])

    denied, granted = await held("denied"), await held("granted")
    await session.ask(ResolveHold(approval_id=denied, decision="deny", reason="no"))
    await session.ask(ResolveHold(approval_id=granted, decision="grant"))
    sleeper = (await session.ask(ExecCommand(workspace_id="demo", command=["sleep", "60"])))["process_id"]
    await session.refused(ResumeOperation(approval_id=granted))
    await session.ask(TerminateProcess(process_id=sleeper))
    await session.ended(sleeper)
    await session.ask(ResumeOperation(approval_id=granted))
    session.be(approval_ttl_seconds=1)
    late = await held("late")
    session.be(approval_ttl_seconds=None)
    await anyio.sleep(1.1)
    await session.refused(ResolveHold(approval_id=late, decision="grant"))


async def _run(session: Session) -> None:
    await session.refused(ExecCommand(workspace_id="demo", command=["no-such-program"]))
    terminal = (await session.ask(ExecCommand(workspace_id="demo", command=["cat"], tty=True)))["process_id"]
    await session.ask(ResizeTerminal(process_id=terminal, rows=30, cols=100))
    await session.ask(WriteInput(process_id=terminal, data="hello\n", eof=True))
    await session.ended(terminal)


async def _steer(session: Session) -> None:
    work_id = (await session.ask(OpenWorkCommand(workspace_id="demo", title="A work")))["work_id"]

    async def written(text: str, delivery: str = "next_checkpoint") -> dict:
        intent = await session.ask(WriteIntent(work_id=work_id, body=text, delivery=delivery))  # type: ignore[arg-type]  # one of three
        return await session.ask(QueueIntentCommand(intent_id=intent["intent_id"], revision=intent["revision"]))

    first, second, third = await written("first"), await written("second"), await written("third")
    await session.ask(EditIntentCommand(intent_id=first["intent_id"], revision=first["revision"], body="first of all"))
    order = tuple(each["intent_id"] for each in (second, first, third))
    await session.ask(ReorderIntentsCommand(work_id=work_id, intent_ids=order))
    await session.ask(CancelIntentCommand(intent_id=third["intent_id"]))
    await session.ask(ClaimNextCommand(work_id=work_id))
    await session.ask(ClaimNextCommand(work_id=work_id, redeliver=True))
    await session.ask(ReleaseIntentCommand(intent_id=second["intent_id"]))
    for _ in range(2):
        item = (await session.ask(ClaimNextCommand(work_id=work_id)))["item"]
        await session.ask(CompleteIntentCommand(work_id=work_id, intent_id=item["intent_id"]))
    await written("afterwards", "after_current_work")
    await session.ask(FinishWorkCommand(work_id=work_id))
    item = (await session.ask(ClaimNextCommand(work_id=work_id)))["item"]
    await session.ask(CompleteIntentCommand(work_id=work_id, intent_id=item["intent_id"], outcome="blocked"))
    notice = (await session.ask(StopWorkCommand(work_id=work_id, reason="stop")))["intent"]
    await session.ask(CompleteIntentCommand(work_id=work_id, intent_id=notice["intent_id"]))
    await session.ask(FinishWorkCommand(work_id=work_id))


if __name__ == "__main__":
    store_life(live, Path(sys.argv[1]), "session")
