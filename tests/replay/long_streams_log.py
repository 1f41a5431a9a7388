"""A log of few, long streams, as a busy workspace leaves them: each grows with `size`, and they grow side by side.

Of `size` instructions in one work there are four events each, and an input to one command; of every second, a refused
call; of every fourth, a preview that comes and goes, and a patch in the work; of every tenth, a work that opens and
closes.
"""

from pathlib import Path

from large_log import patch_of
from scripted_log import ScriptedServer, open_server

from codespace_es.aggregates.instance import InstanceCallRefused
from codespace_es.aggregates.pending.events import (
    PendingActionPlaced,
    PendingActionPopped,
    PendingActionPushed,
    PendingResolveStarted,
)
from codespace_es.aggregates.process import CommandRequest, ProcessExited, ProcessInputSent, ProcessSpawned
from codespace_es.aggregates.steering.events import (
    IntentClaimed,
    IntentCompleted,
    IntentDrafted,
    IntentQueued,
    WorkClosed,
    WorkOpened,
)
from codespace_es.ports.log import Append, NewBody, NewEvent
from codespace_es.vocabulary.errors import ErrorCode
from codespace_es.vocabulary.event import Event
from codespace_es.vocabulary.file_change import digest_of
from codespace_es.vocabulary.identifiers import (
    ActionId,
    IntentId,
    OperationId,
    StreamId,
    WorkId,
    pending_stream,
    steering_stream,
)

WORK = WorkId("work-00000000-0000-4000-8000-000000000001")
PROCESS_STREAM = StreamId("proc-00000000-0000-4000-8000-000000000002")
_EVENTS_AN_APPEND = 300


class _Writer:
    """Gathers events and the contents that they name, and appends many at a time."""

    def __init__(self, server: ScriptedServer) -> None:
        self._server = server
        self._versions: dict[StreamId, int] = {StreamId(server.instance_id): 1}
        self._events: list[NewEvent] = []
        self._bodies: list[NewBody] = []

    def put(self, stream_id: StreamId | str, *events: Event) -> None:
        for event in events:
            version = self._versions.get(StreamId(stream_id), 0) + 1
            self._versions[StreamId(stream_id)] = version
            self._events.append(NewEvent(StreamId(stream_id), version, event))

    def take(self, *events: NewEvent) -> None:
        self._events += events

    def store(self, *bodies: NewBody) -> None:
        self._bodies += bodies

    async def append(self, *, is_last: bool = False) -> None:
        if self._events and (is_last or len(self._events) >= _EVENTS_AN_APPEND):
            await self._server.log.append(Append(tuple(self._events), tuple(self._bodies)), self._server.next_caller())
            self._events, self._bodies = [], []


async def write_long_streams(path: Path, size: int) -> None:
    """Write the log to a new file; `verify` finds nothing in it."""
    async with open_server(path) as server:
        await server.start()
        await server.apply({"first.txt": (None, b"")})
        writer, steering = _Writer(server), steering_stream(server.key)
        writer.put(steering, WorkOpened(workspace_key=server.key, workspace_id="demo", work_id=WORK, title="long"))
        argv = NewBody(PROCESS_STREAM, "request", b'["sh"]')
        writer.store(argv)
        writer.put(PROCESS_STREAM, _spawned(server, argv))
        for number in range(size):
            _write_round(server, writer, steering, number)
            await writer.append()
        writer.put(PROCESS_STREAM, ProcessExited(
            termination="exited", exit_code=0, output_bytes=0, retained_from=0, duration_ms=5, swept=0,
            is_output_cut=False,
        ))
        await writer.append(is_last=True)


def _write_round(server: ScriptedServer, writer: _Writer, steering: StreamId, number: int) -> None:
    intent_id = IntentId(f"fb-{server.ids.uuid()}")
    text = NewBody(steering, "text", f"instruction {number}".encode())
    writer.store(text)
    writer.put(
        steering,
        IntentDrafted(
            intent_id=intent_id, work_id=WORK, kind="follow_up", delivery="next_checkpoint", body=text.body
        ),
        IntentQueued(intent_id=intent_id), IntentClaimed(intent_id=intent_id),
        IntentCompleted(intent_id=intent_id, outcome="done"),
    )
    writer.put(PROCESS_STREAM, ProcessInputSent(size_bytes=1, is_eof=False, mac="00"))
    if number % 2 == 0:
        writer.put(server.instance_id, InstanceCallRefused(
            tool="read", code=ErrorCode.PATH_ESCAPE, workspace_id="demo", arguments=digest_of(b"{}")
        ))
    if number % 4 == 0:
        _preview(server, writer, number)
        begun, bodies, ended, result = patch_of(server.key, OperationId(f"op-{server.ids.uuid()}"), str(number))
        minted = begun[1].event.model_copy(update={"work_id": WORK})
        writer.take(begun[0], NewEvent(begun[1].stream_id, 1, minted), ended)
        writer.store(*bodies, result)
    if number % 10 == 0:
        short = WorkId(f"work-{server.ids.uuid()}")
        opened = WorkOpened(workspace_key=server.key, workspace_id="demo", work_id=short, title="short")
        writer.put(steering, opened, WorkClosed(work_id=short))


def _preview(server: ScriptedServer, writer: _Writer, number: int) -> None:
    stack, action_id = pending_stream(server.key, None), ActionId(f"act-{server.ids.uuid()}")
    preview, answer = (NewBody(stack, "result", f'{{"{each}":{number}}}'.encode()) for each in ("preview", "answer"))
    writer.store(preview, answer)
    pushed = PendingActionPushed(
        workspace_key=server.key, workspace_id="demo", action_id=action_id, label="Rename", source_tool_name="rename",
        handler="rename", preview=preview.body,
    )
    writer.put(stack, pushed)
    writer.put(action_id, PendingActionPlaced(stack_id=stack))
    popped = PendingActionPopped(action_id=action_id, outcome="discarded", remaining=0, result=answer.body)
    writer.put(stack, PendingResolveStarted(action_id=action_id, action="discard"), popped)


def _spawned(server: ScriptedServer, argv: NewBody) -> ProcessSpawned:
    request = CommandRequest(
        workspace_key=server.key, workspace_id="demo", argv=argv.body, command_line="sh", tty=False, stdin="pipe",
        timeout_ms=0, environment_names=(), sandbox="none", network="enabled", is_network_enforced=False,
        fingerprint=digest_of(b"sh"), work_id=WORK,
    )
    return ProcessSpawned(request=request, pid=5, started_ticks=1, boot_id="boot", pid_namespace=1)
