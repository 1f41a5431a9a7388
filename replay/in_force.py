"""Which operations of a work are in force: what has to be undone for its files to be as they were before it.

An undo of something in the work belongs to it, whoever asked: the two cancel each other and are left alone, unless a
later undo has brought the first back. Such a chain is undone as a whole.
"""

from dataclasses import dataclass, field

from codespace_es.aggregates.operation import OperationFinished, OperationMinted, OperationReverted
from codespace_es.aggregates.process import ProcessSpawned
from codespace_es.aggregates.steering.events import WorkOpened
from codespace_es.vocabulary.identifiers import OperationId, StreamId
from replay.source import LogSource


@dataclass(slots=True)
class WorkDone:
    """What a work has left."""

    in_force: tuple[OperationId, ...] = ()
    """To be undone together, newest first."""
    left_out: tuple[OperationId, ...] = ()
    """Undone by an undo that undid operations of other works as well: they can't be told from those."""
    command_count: int = 0
    """Commands that ran: what they changed isn't known."""


@dataclass(slots=True)
class _Known:
    """What the log says of the operations that matter, as it is read."""

    of_work: list[OperationId] = field(default_factory=list)
    undone_by: dict[OperationId, OperationId] = field(default_factory=dict)
    undoes: dict[OperationId, tuple[OperationId, ...]] = field(default_factory=dict)
    order: dict[OperationId, int] = field(default_factory=dict)
    command_count: int = 0


def work_done(source: LogSource, work_id: str) -> WorkDone:
    """Return what the operations of `work_id` have left.

    Memory grows with the work. Raises UnknownTopicError, StoreUnavailableError.
    """
    known = _read(source, work_id)
    selected, left_out = _complete(known)
    undone_by: dict[OperationId, list[OperationId]] = {}
    for each, undo in known.undone_by.items():
        undone_by.setdefault(undo, []).append(each)
    for undo in sorted(selected & known.undoes.keys(), key=known.order.__getitem__, reverse=True):
        pair = {undo, *known.undoes[undo]}
        is_in_force = known.undone_by.get(undo) not in selected
        undone = (each for part in pair for each in undone_by.get(part, ()))
        if pair <= selected and is_in_force and not any(each in selected and each not in pair for each in undone):
            selected -= pair
    newest_first = sorted(selected, key=known.order.__getitem__, reverse=True)
    return WorkDone(tuple(newest_first), tuple(sorted(left_out, key=known.order.__getitem__)), known.command_count)


def _read(source: LogSource, work_id: str) -> _Known:
    known = _Known()
    minted: dict[StreamId, OperationMinted] = {}
    for recorded in source.read_log(after=_position_before(source, work_id)):
        event, stream_id = recorded.event, recorded.stream_id
        if isinstance(event, OperationMinted):
            is_own = event.work_id == work_id
            if not event.check_only and (is_own or any(each in known.order for each in event.undone)):
                minted[stream_id] = event
        elif isinstance(event, OperationFinished):
            began = minted.pop(stream_id, None)
            if began is None or event.status != "applied":
                continue
            operation_id = OperationId(stream_id)
            known.order[operation_id] = recorded.position
            if began.undone:
                known.undoes[operation_id] = began.undone
            if began.work_id == work_id:
                known.of_work.append(operation_id)
        elif isinstance(event, OperationReverted) and OperationId(stream_id) in known.order:
            known.undone_by[OperationId(stream_id)] = event.by
        elif isinstance(event, ProcessSpawned) and event.request.work_id == work_id:
            known.command_count += 1
    return known


def _complete(known: _Known) -> tuple[set[OperationId], set[OperationId]]:
    """Return the work's operations with the undos that undid nothing else, and those that are lost to other undos."""
    selected, left_out = set(known.of_work), set[OperationId]()
    is_changed = True
    while is_changed:
        is_changed = False
        for each in sorted(selected, key=known.order.__getitem__):
            undo = known.undone_by.get(each)
            if undo is None or undo in selected:
                continue
            is_changed = True
            if undo not in left_out and set(known.undoes.get(undo, ())) <= selected:
                selected.add(undo)
            else:
                selected.discard(each)
                left_out.add(each)
    return selected, left_out


def _position_before(source: LogSource, work_id: str) -> int:
    """Return where to begin: right before the work was opened; 0 for one that nobody opened."""
    for item in source.open_items():
        if item.kind == "steering":
            for recorded in source.walk_stream(item.stream_id):
                if isinstance(recorded.event, WorkOpened) and recorded.event.work_id == work_id:
                    return recorded.position
    return 0
