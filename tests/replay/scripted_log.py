"""A log written by the real adapter and the real deciders, from a script: same calls, same bytes, every time."""

import json
from collections.abc import Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from uuid import UUID

from adapters.log.event_log import StoredEventLog
from adapters.log.places import LogPlace
from codespace_es.aggregates.claim import CLAIM, TakeClaim
from codespace_es.aggregates.instance import (
    INSTANCE,
    InstanceCallRefused,
    InstanceRecovered,
    InstanceStarted,
    InstanceStopped,
    RecordRefusal,
    RecoverInstance,
    StartInstance,
    StopInstance,
)
from codespace_es.aggregates.operation import (
    OPERATION,
    FinishOperation,
    MarkReverted,
    MintFinishedOperation,
    MintOperation,
    OperationFinished,
    OperationMinted,
)
from codespace_es.aggregates.store import STORE, CreateStore, RemoveBodies, StoreBodiesRemoved
from codespace_es.aggregates.workspace import WORKSPACE, BindWorkspace, WorkspaceBound
from codespace_es.event_catalogue import CATALOGUE
from codespace_es.folding import fold
from codespace_es.open_index import open_change
from codespace_es.ports.log import Append, NewBody, NewEvent
from codespace_es.vocabulary.errors import ErrorCode
from codespace_es.vocabulary.event import ABSENT, Caller, Digest, Fault
from codespace_es.vocabulary.file_change import FileFinding, PlannedFile, change_of, digest_of
from codespace_es.vocabulary.fingerprint import fingerprint
from codespace_es.vocabulary.identifiers import (
    STORE_STREAM,
    InstanceId,
    OperationId,
    RequestId,
    StreamId,
    claim_stream,
    workspace_key,
)
from codespace_es.vocabulary.patch_result import PatchResult

MACHINE = "machine-1"


class CountingIds:
    """Ids that count up, in the form of random ones."""

    def __init__(self, first: int = 0) -> None:
        self._last = first

    def uuid(self) -> UUID:
        self._last += 1
        return UUID(int=self._last, version=4)


class SteppingClock:
    """A clock that is a millisecond later each time it is asked."""

    def __init__(self) -> None:
        self._steps = 0

    def now(self) -> datetime:
        self._steps += 1
        return datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC) + timedelta(milliseconds=self._steps)

    def monotonic(self) -> float:
        return float(self._steps)


class ScriptedServer:
    """One server process as its log shows it. No file is touched: only what would be recorded is."""

    def __init__(self, log: StoredEventLog, ids: CountingIds, instance_id: InstanceId, root: str) -> None:
        self.log = log
        self.ids = ids
        self.instance_id = instance_id
        self.root = root
        self.key = workspace_key(MACHINE, root)
        self.caller = self.next_caller()

    def next_caller(self, channel: str = "mcp") -> Caller:
        return Caller(channel, RequestId(f"req-{self.ids.uuid()}"), "agent/1")  # type: ignore[arg-type]  # one of the channels

    async def start(self) -> None:
        started = InstanceStarted(
            software="codespace-es/0.1.0", machine_id=MACHINE, host="host", boot_id="boot", pid=7, pid_namespace=1,
            started_ticks=9, transport="stdio", configuration=digest_of(b"configuration"),
        )
        store = await fold(self.log, STORE, STORE_STREAM)
        created = store.decide(CreateStore(str(UUID(int=5)), started.software))
        own = await fold(self.log, INSTANCE, self.instance_id)
        await self._append(created + own.decide(StartInstance(started)))

    async def refuse_call(self) -> None:
        refused = InstanceCallRefused(
            tool="read", code=ErrorCode.PATH_ESCAPE, workspace_id="demo", arguments=digest_of(b"{}")
        )
        await self._append((await fold(self.log, INSTANCE, self.instance_id)).decide(RecordRefusal(refused)))

    async def stop(self) -> None:
        state = await fold(self.log, INSTANCE, self.instance_id)
        await self._append(state.decide(StopInstance(InstanceStopped(reason="eof"))))

    async def recover(self, dead: InstanceId, *, operations_closed: int = 0) -> None:
        recovered = InstanceRecovered(operations_closed=operations_closed, processes_closed=0, resolves_closed=0)
        await self._append((await fold(self.log, INSTANCE, dead)).decide(RecoverInstance(recovered)))

    async def mint(
        self, files: Mapping[str, tuple[bytes | None, bytes | None]], *, key: str | None = None,
        reverts: OperationId | None = None,
    ) -> OperationId:
        """Append the beginning of a patch: `files` maps a path to its content before and after."""
        self.caller = self.next_caller()
        operation_id, claim, minted, bodies = await self._opening(key, reverts=reverts)
        minted = minted.model_copy(update={"plan": tuple(_planned(path, *sides) for path, sides in files.items())})
        images = {content for sides in files.values() for content in sides if content is not None}
        bodies += [NewBody(StreamId(operation_id), "image", content) for content in sorted(images)]
        binding = WorkspaceBound(workspace_id="demo", root=self.root, machine_id=MACHINE, device=1, inode=2)
        bound = (await fold(self.log, WORKSPACE, self.key)).decide(BindWorkspace(binding))
        begun = (await fold(self.log, OPERATION, operation_id)).decide(MintOperation(minted))
        await self._append(bound + claim + begun, bodies)
        return operation_id

    async def finish(
        self, operation_id: OperationId, *, status: str = "applied", findings: Sequence[FileFinding] = (),
    ) -> None:
        """Append the end of a patch, with the mark on what it undid if it was applied."""
        state = await fold(self.log, OPERATION, operation_id)
        minted: OperationMinted = state.state.minted  # type: ignore[union-attr]  # it was minted
        fault = None if status == "applied" else Fault(code=ErrorCode.VERSION_CONFLICT, message="It has changed.")
        result = NewBody(StreamId(operation_id), "result", _result(operation_id, minted, status))
        finished = OperationFinished(
            status=status, fault=fault, result=result.body, findings=tuple(findings),  # type: ignore[arg-type]  # a status
            reason="unknown" if status in ("unknown", "failed_partial") else None,
        )
        events = state.decide(FinishOperation(finished))
        if minted.reverts is not None and status == "applied":
            events += (await fold(self.log, OPERATION, minted.reverts)).decide(MarkReverted(operation_id))
        await self._append(events, [result])

    async def apply(
        self, files: Mapping[str, tuple[bytes | None, bytes | None]], *, key: str | None = None,
        reverts: OperationId | None = None,
    ) -> OperationId:
        operation_id = await self.mint(files, key=key, reverts=reverts)
        await self.finish(operation_id)
        return operation_id

    async def reject(self, *, key: str | None = None) -> OperationId:
        """Append a refusal, minted and finished at once."""
        self.caller = self.next_caller()
        operation_id, claim, minted, bodies = await self._opening(key)
        finished = OperationFinished(status="rejected", fault=Fault(code=ErrorCode.INVALID_PATCH, message="No hunk."))
        state = await fold(self.log, OPERATION, operation_id)
        await self._append(claim + state.decide(MintFinishedOperation(minted, finished)), bodies)
        return operation_id

    async def check(self, files: Mapping[str, tuple[bytes | None, bytes | None]]) -> OperationId:
        """Append a preview, minted and finished at once."""
        self.caller = self.next_caller()
        operation_id, claim, minted, bodies = await self._opening(None)
        plan = tuple(_planned(path, *sides) for path, sides in files.items())
        minted = minted.model_copy(update={"plan": plan, "check_only": True})
        result = NewBody(StreamId(operation_id), "result", _result(operation_id, minted, "checked"))
        finished = OperationFinished(status="checked", result=result.body)
        state = await fold(self.log, OPERATION, operation_id)
        await self._append(claim + state.decide(MintFinishedOperation(minted, finished)), [*bodies, result])
        return operation_id

    async def remove_bodies(self, removed: Sequence[tuple[StreamId, Digest]], *, total_bytes: int) -> None:
        """Remove stored contents, and append that they were."""
        listed = NewBody(STORE_STREAM, "result", json.dumps(list(removed)).encode())
        event = StoreBodiesRemoved(reason="pruned", count=len(removed), total_bytes=total_bytes, digests=listed.body)
        events = (await fold(self.log, STORE, STORE_STREAM)).decide(RemoveBodies(event))
        scrubbed = tuple((digest, stream_id) for stream_id, digest in removed)
        await self.log.append(Append(events, (listed,), scrubbed), self.next_caller("cli"))

    async def _opening(
        self, key: str | None, *, reverts: OperationId | None = None
    ) -> tuple[OperationId, tuple[NewEvent, ...], OperationMinted, list[NewBody]]:
        operation_id = OperationId(f"op-{self.ids.uuid()}")
        request = NewBody(StreamId(operation_id), "request", f"*** Begin Patch {operation_id}".encode())
        print_of = fingerprint(request=operation_id)
        claim: tuple[NewEvent, ...] = ()
        if key is not None:
            state = await fold(self.log, CLAIM, claim_stream("operation_key", key))
            claim = state.decide(TakeClaim("operation_key", operation_id, print_of))
        minted = OperationMinted(
            workspace_key=self.key, workspace_id="demo", source="revert" if reverts else "apply_patch",
            check_only=False, fingerprint=print_of, operation_key=key, reverts=reverts, request=request.body,
        )
        return operation_id, claim, minted, [request]

    async def _append(self, events: Sequence[NewEvent], bodies: Sequence[NewBody] = ()) -> None:
        await self.log.append(Append(tuple(events), tuple(bodies)), self.caller)


@asynccontextmanager
async def open_server(place: LogPlace | None, *, number: int = 1, root: str = "/srv/demo"):  # type: ignore[no-untyped-def]  # tests only
    """Give a scripted server on the log at `place` (None: in memory); each number is an instance of its own."""
    ids = CountingIds(number * 1_000_000)
    instance_id = InstanceId(f"inst-{ids.uuid()}")
    log = StoredEventLog(
        place, catalogue=CATALOGUE, open_rule=open_change, instance_id=instance_id, clock=SteppingClock(), ids=ids
    )
    async with log:
        yield ScriptedServer(log, ids, instance_id, root)


async def write_a_life(place: LogPlace, root: str = "/srv/demo") -> dict[str, OperationId]:
    """Write a log with every event of the catalogue that one store can have; return its operations by what they are."""
    async with open_server(place, number=1, root=root) as first:
        await first.start()
        told = {"added": await first.apply({"a.txt": (None, b"one\n"), "b/c.txt": (None, b"c\n")}, key="key-1")}
        told["updated"] = await first.apply({"a.txt": (b"one\n", b"two\n")}, key="key-2")
        told["rejected"] = await first.reject(key="key-3")
        told["checked"] = await first.check({"a.txt": (b"two\n", b"three\n")})
        await first.refuse_call()
        told["undo"] = await first.apply({"a.txt": (b"two\n", b"one\n")}, reverts=told["updated"])
        told["left"] = await first.mint({"a.txt": (b"one\n", b"four\n")}, key="key-4")
        dead = first.instance_id
    async with open_server(place, number=2, root=root) as second:
        await second.start()
        await second.finish(told["left"], status="failed_rolled_back")
        await second.recover(dead, operations_closed=1)
        told["deleted"] = await second.apply({"b/c.txt": (b"c\n", None)})
        await second.remove_bodies(
            [(StreamId(told["added"]), digest_of(b"one\n")), (StreamId(told["added"]), digest_of(b"c\n"))],
            total_bytes=6,
        )
        await second.stop()
    async with open_server(place, number=3, root=root) as third:
        await third.start()
        told["open"] = await third.mint({"a.txt": (b"one\n", b"five\n")}, key="key-5")
    return told


def _planned(path: str, before: bytes | None, after: bytes | None) -> PlannedFile:
    return PlannedFile(
        path=path,
        kind="add" if before is None else "delete" if after is None else "update",
        before=ABSENT if before is None else digest_of(before),
        after=ABSENT if after is None else digest_of(after),
        before_bytes=None if before is None else len(before),
        after_bytes=None if after is None else len(after),
        mode=None if after is None else 0o644,
        before_mode=None if before is None else 0o644,
    )


def _result(operation_id: OperationId, minted: OperationMinted, status: str) -> bytes:
    changes = tuple(change_of(row, is_after_known=status in ("applied", "checked")) for row in minted.plan)
    files = tuple(row.path for row in minted.plan)
    return PatchResult(status=status, operation_id=operation_id, files=files, changes=changes).to_stored()
