"""The log as a person reads it: one plain sentence an event, with who spoke and what it links to.

Every event class has its sentence here; a test demands one for each class of the catalogue.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from types import MappingProxyType
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from codespace_es.aggregates.claim import ClaimReleased, ClaimTaken
from codespace_es.aggregates.instance import (
    InstanceCallRefused,
    InstanceRecovered,
    InstanceStarted,
    InstanceStopped,
)
from codespace_es.aggregates.operation import OperationFinished, OperationMinted, OperationReverted
from codespace_es.aggregates.store import StoreBodiesRemoved, StoreCopied, StoreCreated
from codespace_es.aggregates.workspace import WorkspaceBound
from codespace_es.vocabulary.event import Event, RecordedEvent
from codespace_es.vocabulary.file_change import PlannedFile

_ID = re.compile(r"(?:op|proc|appr|work|fb|act|inst|wsp)-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_PATHS_SHOWN_MAX = 3


class TimelineEntry(BaseModel):
    """One event for a reader."""

    model_config = ConfigDict(frozen=True)

    position: int = Field(description="Place in the whole log.")
    recorded_at: datetime = Field(description="UTC; orders nothing.")
    stream_id: str = Field(description="What it happened to.")
    version: int = Field(description="Place in that stream.")
    topic: str = Field(description="What kind of event it is.")
    channel: str = Field(description="Who spoke.")
    client: str | None = Field(default=None, description="The client's name/version.")
    instance_id: str = Field(description="The server process that recorded it.")
    request_id: str = Field(description="The call it belongs to.")
    summary: str = Field(description="One sentence.")
    refs: tuple[str, ...] = Field(default=(), description="Ids that it links to, beside its own stream.")


def project(recorded: RecordedEvent) -> TimelineEntry:
    """Return what a reader is told of one recorded event."""
    envelope = recorded.envelope
    return TimelineEntry(
        position=recorded.position,
        recorded_at=envelope.recorded_at,
        stream_id=recorded.stream_id,
        version=recorded.version,
        topic=recorded.topic,
        channel=envelope.channel,
        client=envelope.client,
        instance_id=envelope.instance_id,
        request_id=envelope.request_id,
        summary=summarise(recorded.event),
        refs=tuple(each for each in links(recorded.event) if each != recorded.stream_id),
    )


def links(event: Event) -> Iterator[str]:
    """Yield each id that a field of `event` holds, in the order of its fields, once."""
    seen: set[str] = set()
    for name in type(event).model_fields:
        value = getattr(event, name)
        if isinstance(value, str) and value not in seen and _ID.fullmatch(value):
            seen.add(value)
            yield value


def summarise(event: Event) -> str:
    """Return what `event` says in one plain sentence."""
    return SENTENCES[type(event)](event)


def _store_created(event: StoreCreated) -> str:
    return f"The log {event.store_id} begins, made by {event.software}."


def _store_bodies_removed(event: StoreBodiesRemoved) -> str:
    return f"Stored contents were {event.reason}: {event.count:,}, of {event.total_bytes:,} bytes together."


def _store_copied(event: StoreCopied) -> str:
    return f"The log goes on here, copied from {event.from_store_id} at position {event.from_position}."


def _instance_started(event: InstanceStarted) -> str:
    return f"{event.software} started on {event.host} as process {event.pid}, serving {event.transport}."


def _instance_stopped(event: InstanceStopped) -> str:
    reasons = {
        "eof": "its client closed the input",
        "signal": "it was told to end",
        "output_closed": "nobody read its output any more",
        "done": "its work was done",
        "fault": "of a fault",
    }
    return f"The server stopped because {reasons[event.reason]}."


def _instance_call_refused(event: InstanceCallRefused) -> str:
    place = f" in workspace {event.workspace_id}" if event.workspace_id is not None else ""
    return f"A call of {event.tool}{place} was refused with {event.code}."


def _instance_recovered(event: InstanceRecovered) -> str:
    closed = event.operations_closed + event.processes_closed + event.resolves_closed
    if not closed:
        return "Another server found this one dead, with nothing left to close."
    return f"Another server found this one dead and closed {_count(closed, 'thing')} that it had left open."


def _workspace_bound(event: WorkspaceBound) -> str:
    return f"Workspace {event.workspace_id} stands for the directory {event.root}."


def _claim_taken(event: ClaimTaken) -> str:
    return f"The {event.kind.replace('_', ' ')} was taken by {event.holder_id}."


def _claim_released(event: ClaimReleased) -> str:
    return f"The hold was let go by {event.holder_id}."


def _operation_minted(event: OperationMinted) -> str:
    who = "An undo" if event.source == "revert" else event.source_tool_name or event.source
    if not event.plan:
        return f"{who} in workspace {event.workspace_id} was recorded, with nothing planned."
    verb = "would change" if event.check_only else "is about to change"
    purpose = f" of {event.reverts}" if event.reverts is not None else ""
    return f"{who}{purpose} {verb} {_paths(event.plan)} in workspace {event.workspace_id}."


def _operation_finished(event: OperationFinished) -> str:
    sentence = {
        "checked": "The preview was answered; nothing was written",
        "applied": "Every planned file has its new content",
        "rejected": "The request was refused; nothing was written",
        "failed_rolled_back": "Writing failed, and every file is as it was before",
        "failed_partial": "Writing failed, and some files have changed",
        "unknown": "What became of the files can't be said",
    }[event.status]
    because = f" ({event.fault.code}: {event.fault.message.rstrip('.')})" if event.fault is not None else ""
    how = ", found after a crash" if event.reason == "recovered" else ""
    return f"{sentence}{how}{because}."


def _operation_reverted(event: OperationReverted) -> str:
    return f"It was undone by {event.by}."


def _paths(plan: tuple[PlannedFile, ...]) -> str:
    shown = ", ".join(planned.path for planned in plan[:_PATHS_SHOWN_MAX])
    rest = len(plan) - _PATHS_SHOWN_MAX
    return f"{shown} and {_count(rest, 'more file')}" if rest > 0 else shown


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


SENTENCES: Mapping[type[Event], Callable[[Any], str]] = MappingProxyType({
    StoreCreated: _store_created,
    StoreBodiesRemoved: _store_bodies_removed,
    StoreCopied: _store_copied,
    InstanceStarted: _instance_started,
    InstanceStopped: _instance_stopped,
    InstanceCallRefused: _instance_call_refused,
    InstanceRecovered: _instance_recovered,
    WorkspaceBound: _workspace_bound,
    ClaimTaken: _claim_taken,
    ClaimReleased: _claim_released,
    OperationMinted: _operation_minted,
    OperationFinished: _operation_finished,
    OperationReverted: _operation_reverted,
})
"""One a class of the catalogue, exactly."""
