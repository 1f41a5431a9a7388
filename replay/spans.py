"""`export --format otlp`: what was done as OpenTelemetry spans, in the JSON form of OTLP, one object a line.

Made from the log by whoever reads it, so that servers pay nothing for it, and the past can be told as well. A span is
told at the event that ends it: operations (minted to finished), commands (spawned to exited), holds (created to their
end) and works (opened to closed). Ids follow from the log and the stream, so telling a span twice gives the same span.

A trace is a work with all that was done for it; else a hold with what it led to; else one call.
Source: OpenTelemetry protocol 1.x, JSON encoding and file exporter.
"""

import json
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from hashlib import sha256
from itertools import takewhile
from typing import Any, NamedTuple

from codespace_es.aggregates.approval import ApprovalConsumed, ApprovalCreated, ApprovalDenied, ApprovalExpired
from codespace_es.aggregates.instance import InstanceStarted
from codespace_es.aggregates.operation import OperationFinished, OperationMinted
from codespace_es.aggregates.process import ProcessEndRequested, ProcessExited, ProcessInputSent, ProcessSpawned
from codespace_es.aggregates.steering.events import WorkClosed, WorkOpened
from codespace_es.vocabulary.event import Event, RecordedEvent
from codespace_es.vocabulary.identifiers import StreamId
from replay.checkpoint import store_id_of
from replay.source import LogSource, first_of

_SCOPE = "codespace-es"
_INTERNAL = 1
_OK, _ERROR = 1, 2
_SERVERS_REMEMBERED_MAX = 1_000
_MOMENTS_MAX = 128
"""How many events a span tells; the limit that OpenTelemetry's own libraries begin with."""
_BAD_ENDS = ("rejected", "failed_rolled_back", "failed_partial", "unknown")

Facts = dict[str, str | int | bool | None]


class _Span(NamedTuple):
    """A span before it is written."""

    name: str
    thing: str
    """What it is of: gives its id."""
    root: str
    """What its trace is of."""
    parent: str | None
    began: RecordedEvent
    ended: RecordedEvent
    facts: Facts
    problem: str | None = None
    """Why it didn't succeed."""
    moments: Sequence[RecordedEvent] = ()
    """What happened within it, the first of it."""
    moments_left_out: int = 0
    links: tuple[tuple[str, str], ...] = ()
    """Roots and things of other spans that it refers to."""


def otlp_lines(source: LogSource, *, after: int = 0) -> Iterator[bytes]:
    """Yield a line for each span whose end has a position > `after`; a span's `codespace.position` is that of its end.

    What has not ended is told once it has. Raises UnknownTopicError, StoreUnavailableError.
    """
    spans = Spans(source)
    for recorded in source.read_log(after=after):
        span = spans.ended_by(recorded)
        if span is not None:
            yield json.dumps(spans.told(span), separators=(",", ":"), ensure_ascii=False).encode() + b"\n"


class Spans:
    """Finds and tells the spans of one log."""

    def __init__(self, source: LogSource) -> None:
        self._source = source
        self._store_id = store_id_of(source)
        self._servers: OrderedDict[str, InstanceStarted | None] = OrderedDict()
        self._works: dict[StreamId, dict[str, RecordedEvent]] = {}
        """The works that are open where the reading is, by their workspace's stream; begins with the first one met."""

    def ended_by(self, recorded: RecordedEvent) -> _Span | None:
        """Return the span that ends with an event; None for most."""
        match recorded.event:
            case OperationFinished():
                return self._operation(recorded, recorded.event)
            case ProcessExited():
                return self._command(recorded, recorded.event)
            case ApprovalConsumed() | ApprovalDenied() | ApprovalExpired():
                return self._hold(recorded, recorded.event)
            case WorkOpened():
                self._open_works(recorded)[recorded.event.work_id] = recorded
                return None
            case WorkClosed():
                return self._work(recorded, recorded.event)
            case _:
                return None

    def told(self, span: _Span) -> dict[str, Any]:
        """Return a span as the one of an OTLP `TracesData`."""
        began, ended = span.began.envelope.recorded_at, span.ended.envelope.recorded_at
        facts = {"codespace.position": span.ended.position, **_who(span.began), **span.facts}
        told: dict[str, Any] = {
            "traceId": self._id(span.root, 16),
            "spanId": self._id(span.thing, 8),
            **({} if span.parent is None else {"parentSpanId": self._id(span.parent, 8)}),
            "name": span.name,
            "kind": _INTERNAL,
            "startTimeUnixNano": _nanoseconds(began),
            "endTimeUnixNano": _nanoseconds(max(began, ended)),  # another server's clock may be behind
            "attributes": _attributes(facts),
            "events": [
                {"timeUnixNano": _nanoseconds(each.envelope.recorded_at), "name": each.topic} for each in span.moments
            ],
            **({"droppedEventsCount": span.moments_left_out} if span.moments_left_out else {}),
            "links": [
                {"traceId": self._id(root, 16), "spanId": self._id(thing, 8)} for root, thing in span.links
            ],
            "status": {"code": _OK} if span.problem is None else {"code": _ERROR, "message": span.problem},
        }
        scope = {"scope": {"name": _SCOPE}, "spans": [told]}
        resource = {"attributes": _attributes(self._server(span.began.envelope.instance_id))}
        return {"resourceSpans": [{"resource": resource, "scopeSpans": [scope]}]}

    def _operation(self, recorded: RecordedEvent, finished: OperationFinished) -> _Span | None:
        began = first_of(self._source, recorded.stream_id)
        if began is None or not isinstance(minted := began.event, OperationMinted):
            return None
        root, parent = _place(began, minted.work_id, minted.approval_id)
        name = minted.told_source
        facts: Facts = {
            "codespace.operation.id": recorded.stream_id, "codespace.operation.status": finished.status,
            "codespace.operation.source": minted.source, "codespace.operation.files": len(minted.plan),
            "codespace.operation.check_only": minted.check_only, "codespace.operation.key": minted.operation_key,
            "codespace.workspace": minted.workspace_id, "codespace.work.id": minted.work_id,
        }
        fault = finished.fault
        problem = f"{fault.code}: {fault.message}" if fault is not None else finished.status
        undone = (first_of(self._source, each) for each in minted.undone)
        return _Span(
            name, recorded.stream_id, root, parent, began, recorded, facts,
            problem=problem if finished.status in _BAD_ENDS else None,
            links=tuple(
                (_place(each, each.event.work_id, each.event.approval_id)[0], each.stream_id)
                for each in undone if each is not None and isinstance(each.event, OperationMinted)
            ),
        )

    def _command(self, recorded: RecordedEvent, exited: ProcessExited) -> _Span | None:
        began = first_of(self._source, recorded.stream_id)
        if began is None or not isinstance(spawned := began.event, ProcessSpawned):
            return None
        request = spawned.request
        root, parent = _place(began, request.work_id, request.approval_id)
        facts: Facts = {
            "codespace.process.id": recorded.stream_id, "process.command_line": request.command_line,
            "process.pid": spawned.pid, "process.exit.code": exited.exit_code,
            "codespace.process.termination": exited.termination, "codespace.process.output_bytes": exited.output_bytes,
            "codespace.process.sandbox": request.sandbox, "codespace.workspace": request.workspace_id,
            "codespace.work.id": request.work_id,
        }
        is_success = exited.termination == "exited" and exited.exit_code == 0
        told = f"exit code {exited.exit_code}" if exited.termination == "exited" else exited.termination
        moments, left_out = self._inside(recorded, (ProcessInputSent, ProcessEndRequested))
        return _Span(
            "exec_command", recorded.stream_id, root, parent, began, recorded, facts,
            problem=None if is_success else told, moments=moments, moments_left_out=left_out,
        )

    def _hold(self, recorded: RecordedEvent, end: Event) -> _Span | None:
        began = first_of(self._source, recorded.stream_id)
        if began is None or not isinstance(created := began.event, ApprovalCreated):
            return None
        outcome = recorded.topic.split(".")[1]
        facts: Facts = {
            "codespace.approval.id": recorded.stream_id, "codespace.approval.tool": created.tool,
            "codespace.approval.outcome": outcome, "codespace.workspace": created.workspace_id,
            "codespace.work.id": created.work_id,
        }
        fault = end.fault if isinstance(end, ApprovalConsumed) else None
        is_refused = not isinstance(end, ApprovalConsumed) or fault is not None
        moments, left_out = self._inside(recorded, (Event,))
        return _Span(
            f"hold {created.tool}", recorded.stream_id, created.work_id or recorded.stream_id, created.work_id,
            began, recorded, facts, moments=moments, moments_left_out=left_out,
            problem=(outcome if fault is None else f"{fault.code}: {fault.message}") if is_refused else None,
        )

    def _work(self, recorded: RecordedEvent, closed: WorkClosed) -> _Span | None:
        opened = self._open_works(recorded).pop(closed.work_id, None)
        if opened is None or not isinstance(work := opened.event, WorkOpened):
            return None
        facts: Facts = {"codespace.work.id": work.work_id, "codespace.workspace": work.workspace_id}
        name = f"work {work.title}" if work.title else "work"
        return _Span(name, work.work_id, work.work_id, None, opened, recorded, facts)

    def _open_works(self, recorded: RecordedEvent) -> dict[str, RecordedEvent]:
        """Return the works of a workspace that are open at an event of it; those of before are looked up once."""
        known = self._works.get(recorded.stream_id)
        if known is None:
            known = self._works[recorded.stream_id] = {}
            stream = self._source.walk_stream(recorded.stream_id)
            for each in takewhile(lambda each: each.position < recorded.position, stream):
                if isinstance(each.event, WorkOpened):
                    known[each.event.work_id] = each
                elif isinstance(each.event, WorkClosed):
                    known.pop(each.event.work_id, None)
        return known

    def _inside(
        self, recorded: RecordedEvent, kinds: tuple[type[Event], ...]
    ) -> tuple[list[RecordedEvent], int]:
        """Return the first events of these kinds between the first of a stream and `recorded`, and how many follow."""
        found: list[RecordedEvent] = []
        left_out = 0
        stream = self._source.walk_stream(recorded.stream_id, after=1)
        for each in takewhile(lambda each: each.position < recorded.position, stream):
            if isinstance(each.event, kinds):
                if len(found) < _MOMENTS_MAX:
                    found.append(each)
                else:
                    left_out += 1
        return found, left_out

    def _server(self, instance_id: str) -> Facts:
        """Return what is told of the server that recorded a span."""
        if instance_id not in self._servers:
            first = first_of(self._source, instance_id)
            started = first.event if first is not None else None
            self._servers[instance_id] = started if isinstance(started, InstanceStarted) else None
            if len(self._servers) > _SERVERS_REMEMBERED_MAX:
                self._servers.popitem(last=False)
        known = self._servers[instance_id]
        name, _, version = (known.software if known is not None else _SCOPE).partition("/")
        return {
            "service.name": name, "service.version": version or None, "service.instance.id": instance_id,
            "host.name": None if known is None else known.host, "codespace.store.id": self._store_id,
        }

    def _id(self, thing: str, size_bytes: int) -> str:
        return sha256(f"{self._store_id}\n{thing}".encode()).hexdigest()[: 2 * size_bytes]


def _place(began: RecordedEvent, work_id: str | None, approval_id: str | None) -> tuple[str, str | None]:
    """Return what the trace of something is of, and of what its parent is."""
    return work_id or approval_id or began.envelope.request_id, approval_id or work_id


def _who(began: RecordedEvent) -> Facts:
    envelope = began.envelope
    return {
        "codespace.channel": envelope.channel, "codespace.client": envelope.client,
        "codespace.request.id": envelope.request_id,
    }


def _nanoseconds(at: datetime) -> str:
    return str(round(at.timestamp() * 1000) * 1_000_000)


def _attributes(facts: Mapping[str, str | int | bool | None]) -> list[dict[str, Any]]:
    return [{"key": name, "value": _value(value)} for name, value in facts.items() if value is not None]


def _value(value: str | int | bool) -> dict[str, Any]:
    if isinstance(value, bool):
        return {"boolValue": value}
    return {"intValue": str(value)} if isinstance(value, int) else {"stringValue": value}
