"""`report`: what is told of a session or a range of a log, gathered for a page that stands by itself.

A stranger who has only the page has to learn what was changed, run and asked, who approved, what failed, what was
undone, and whether anything is missing. One walk through the range; each thing is then told from its own stream, as it
was at the end of the range.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import takewhile

from codespace_es.aggregates.approval import ApprovalCreated
from codespace_es.aggregates.instance import InstanceCallRefused, InstanceStarted
from codespace_es.aggregates.operation import OperationMinted
from codespace_es.aggregates.pending.events import PendingActionPopped, PendingActionPushed
from codespace_es.aggregates.process import Exited, NotStarted, ProcessNotStarted, ProcessSpawned
from codespace_es.aggregates.process import Running as RunningProcess
from codespace_es.ports.log import StoreUnavailableError
from codespace_es.projections.approval_status import ApprovalReport
from codespace_es.projections.approval_status import project as approval_of
from codespace_es.projections.operation_status import OperationReport
from codespace_es.projections.operation_status import project as report_of
from codespace_es.projections.timeline import TimelineEntry, project
from codespace_es.vocabulary.event import Body, RecordedEvent
from codespace_es.vocabulary.identifiers import StreamId
from replay.checkpoint import store_id_of
from replay.difference import FileDifference, difference
from replay.removals import Removals
from replay.source import LogSource, first_of
from replay.state_at import FoldedTo, fold_to, past_of
from replay.story import FileStory, tell_files
from replay.verify import VerifyReport, verify
from replay.work_story import INTENTS_SHOWN_MAX, IntentStory, WorkStory, fold_steering, names_of, tell_intent, tell_work

ENTRIES_MAX = 2_000
THINGS_MAX = 500
"""Operations, commands and holds told in full; of each kind."""
_INTENTS_MAX = 5_000
"""Instructions of all works."""
NAMES_MAX = 100
"""Servers and clients; of each."""
_OUTPUT_CHARACTERS_MAX = 4_000


@dataclass(frozen=True, slots=True)
class ToldOperation:
    """An operation with its files."""

    report: OperationReport
    began: TimelineEntry
    files: tuple[FileStory, ...]
    approval_id: str | None = None
    """The hold that it was resumed from."""


@dataclass(frozen=True, slots=True)
class ToldCommand:
    """A command and its end."""

    process_id: str
    began: TimelineEntry
    command_line: str
    ending: str
    is_success: bool | None
    """None while it runs."""
    confinement: str
    output: str | None


@dataclass(frozen=True, slots=True)
class ToldApproval:
    """A hold and who decided it."""

    report: ApprovalReport
    began: TimelineEntry


@dataclass(slots=True)
class ToldAction:
    """A preview that waited to be applied or discarded."""

    action_id: str
    began: TimelineEntry
    label: str
    tool: str
    outcome: str | None = None
    """None while it waits."""


@dataclass(slots=True)
class Gathered:
    """All that a page tells."""

    store_id: str
    begin: int
    end: int
    session: str | None
    verification: VerifyReport
    first_at: datetime | None = None
    last_at: datetime | None = None
    first_position: int = 0
    last_position: int = 0
    """Of what is told; a session may begin and end within the range."""
    servers: list[str] = field(default_factory=list)
    clients: list[str] = field(default_factory=list)
    entries: list[TimelineEntry] = field(default_factory=list)
    entry_count: int = 0
    operations: list[ToldOperation] = field(default_factory=list)
    commands: list[ToldCommand] = field(default_factory=list)
    approvals: list[ToldApproval] = field(default_factory=list)
    actions: dict[str, ToldAction] = field(default_factory=dict)
    works: list[WorkStory] = field(default_factory=list)
    loose_intents: list[IntentStory] = field(default_factory=list)
    """Instructions that belong to no work."""
    refusals: Counter[tuple[str, str]] = field(default_factory=Counter)
    counts: Counter[str] = field(default_factory=Counter)
    """Of everything, also of what is too much to be told in full: operation, command, approval, action, work."""
    files: tuple[FileDifference, ...] = ()


def gather(source: LogSource, begin: int, end: int, *, session: str | None = None) -> Gathered:
    """Return what is to be told of the events after `begin` up to `end`.

    Args:
        source: The log.
        begin: Position before the first event.
        end: Position of the last one.
        session: Only what this server (inst-...) recorded, or clients whose name begins with this.

    Raises:
        UnknownTopicError: a newer version has written something of it.
        StoreUnavailableError: the log can't be read.
    """
    told = Gathered(store_id_of(source), begin, end, session, verify(source))
    removals = Removals(source)
    steered: dict[StreamId, set[str]] = {}
    for recorded in takewhile(lambda each: each.position <= end, source.read_log(after=begin)):
        if session is not None and not _is_of_session(recorded, session):
            continue
        entry = project(recorded)
        _note(told, recorded, entry)
        _tell(source, told, recorded, entry, removals)
        _note_action(told, recorded, entry)
        if recorded.topic.startswith("steering."):
            steered.setdefault(recorded.stream_id, set()).update(names_of(recorded.event))
    for stream_id, names in steered.items():
        _tell_works(source, told, stream_id, names)
    if session is None:
        told.files = difference(source, begin, end).files
    elif told.last_position:
        own = {each.report.operation_id for each in told.operations}
        found = difference(source, told.first_position - 1, told.last_position).files
        told.files = tuple(each for each in found if not own.isdisjoint(each.operations))
    return told


def _is_of_session(recorded: RecordedEvent, session: str) -> bool:
    envelope = recorded.envelope
    if session.startswith("inst-"):
        return session in (envelope.instance_id, recorded.stream_id)
    return (envelope.client or "").startswith(session)


def _note(told: Gathered, recorded: RecordedEvent, entry: TimelineEntry) -> None:
    told.first_at = told.first_at or entry.recorded_at
    told.last_at = entry.recorded_at
    told.first_position, told.last_position = told.first_position or entry.position, entry.position
    told.entry_count += 1
    if len(told.entries) < ENTRIES_MAX:
        told.entries.append(entry)
    if entry.client is not None and entry.client not in told.clients and len(told.clients) < NAMES_MAX:
        told.clients.append(entry.client)
    event = recorded.event
    if isinstance(event, InstanceStarted) and len(told.servers) < NAMES_MAX:
        told.servers.append(f"{event.software} on {event.host}, {recorded.stream_id}")
    if isinstance(event, InstanceCallRefused):
        told.refusals[event.tool, event.code.value] += 1


def _tell(
    source: LogSource, told: Gathered, recorded: RecordedEvent, entry: TimelineEntry, removals: Removals
) -> None:
    """Tell in full what begins with `recorded`, if anything does and there is room."""
    event, stream_id = recorded.event, recorded.stream_id
    kind = {
        OperationMinted: "operation", ProcessSpawned: "command", ProcessNotStarted: "command",
        ApprovalCreated: "approval",
    }.get(type(event))
    if kind is None:
        return
    told.counts[kind] += 1
    if told.counts[kind] > THINGS_MAX:
        return
    first = first_of(source, stream_id)
    (folded,) = fold_to(source, stream_id, (told.end,))
    if first is None or folded is None or type(first.event) is not type(event):
        raise StoreUnavailableError(f"{stream_id} doesn't begin where it does, see `verify`")
    if isinstance(event, OperationMinted):
        report = report_of(past_of(source, stream_id, told.end))
        files = tell_files(source, stream_id, event, removals)
        told.operations.append(ToldOperation(report, entry, files, event.approval_id))
    elif isinstance(event, ApprovalCreated):
        told.approvals.append(ToldApproval(approval_of(past_of(source, stream_id, told.end)), entry))
    else:
        told.commands.append(_command(source, folded, entry))


def _note_action(told: Gathered, recorded: RecordedEvent, entry: TimelineEntry) -> None:
    event = recorded.event
    if isinstance(event, PendingActionPushed):
        told.counts["action"] += 1
        if told.counts["action"] <= THINGS_MAX:
            told.actions[event.action_id] = ToldAction(event.action_id, entry, event.label, event.source_tool_name)
    elif isinstance(event, PendingActionPopped) and event.action_id in told.actions:
        told.actions[event.action_id].outcome = event.outcome


def _tell_works(source: LogSource, told: Gathered, stream_id: StreamId, names: set[str]) -> None:
    """Tell the works and instructions of one workspace that the range is about, as they were at its end."""
    state = fold_steering(past_of(source, stream_id, told.end))
    belonging = {intent.work_id for name, intent in state.intents.items() if name in names}
    for work_id in state.works:
        if work_id in names or work_id in belonging:
            told.counts["work"] += 1
            room = min(INTENTS_SHOWN_MAX, _INTENTS_MAX - sum(len(each.intents) for each in told.works))
            if len(told.works) < THINGS_MAX:
                told.works.append(tell_work(source, stream_id, state, work_id, intents_max=room))
    loose = [each for each in state.attached(None) if each.intent_id in names]
    room = THINGS_MAX - len(told.loose_intents)
    told.loose_intents += [tell_intent(source, stream_id, each) for each in loose[:room]]


def _command(source: LogSource, folded: FoldedTo, entry: TimelineEntry) -> ToldCommand:
    state, stream_id = folded.state, folded.last.stream_id
    request = state.refused.request if isinstance(state, NotStarted) else None
    output: str | None = None
    is_success: bool | None = False
    ending = "hasn't ended"
    if isinstance(state, Exited):
        ended = state.exited
        request = state.spawned.request
        is_success = ended.termination == "exited" and ended.exit_code == 0
        how = {"exited": f"exit code {ended.exit_code}", "signaled": f"signal {ended.signal}"}
        ending = ", ".join([
            how.get(ended.termination, ended.termination),
            *([] if ended.duration_ms is None else [f"{ended.duration_ms / 1000:.1f} s"]),
            f"{ended.output_bytes:,} bytes of output",
        ])
        output = "".join(_texts(source, stream_id, (ended.output_head, ended.output_tail))) or None
    elif isinstance(state, RunningProcess):
        request = state.spawned.request
        is_success = None
    elif isinstance(state, NotStarted):
        ending = f"not started: {state.refused.fault.message}"
    assert request is not None, "a process begins with its request"
    network = f"network {request.network}" + ("" if request.is_network_enforced else ", not enforced")
    return ToldCommand(
        stream_id, entry, request.command_line, ending, is_success, f"sandbox {request.sandbox}, {network}", output
    )


def _texts(source: LogSource, stream_id: StreamId, bodies: Sequence[Body | None]) -> Iterator[str]:
    for body in bodies:
        content = None if body is None else source.read_body(stream_id, body.digest)
        if content is not None:
            text = content.decode("utf-8", "replace")
            yield text if len(text) <= _OUTPUT_CHARACTERS_MAX else "[...]\n" + text[-_OUTPUT_CHARACTERS_MAX:]
