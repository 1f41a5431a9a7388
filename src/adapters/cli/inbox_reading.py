"""What the log says of works and intents: found by an id or by how it begins."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TypeVar

from adapters.log.reader import LogReader
from codespace_es.aggregates.steering import STEERING
from codespace_es.aggregates.steering.state import Intent, Steering, Work
from codespace_es.command_handlers.inbox import in_order
from codespace_es.command_handlers.steering import IntentAnswer, project_intent
from codespace_es.vocabulary.errors import CodespaceError, ErrorCode
from codespace_es.vocabulary.identifiers import StreamId

_Name = TypeVar("_Name", bound=str)


@dataclass(frozen=True, slots=True)
class Steered:
    """One workspace's works and intents."""

    stream_id: StreamId
    state: Steering


def all_steering(source: LogReader) -> Iterator[Steered]:
    """Yield every workspace that ever had a work."""
    for item in source.open_items(kind="steering"):
        yield Steered(item.stream_id, STEERING.fold_recorded(source.read_stream(item.stream_id)))


def ids_beginning(source: LogReader, beginning: str) -> list[str]:
    """Return the ids of works and intents that begin with `beginning`, in order."""
    known = (each for steered in all_steering(source) for each in (*steered.state.works, *steered.state.intents))
    return sorted(each for each in known if each.startswith(beginning))


def find_work(source: LogReader, identifier: str) -> tuple[Steered, Work]:
    """Return the one work that `identifier` names or begins. Raises WORK_NOT_FOUND."""
    known = {work.work_id: (steered, work) for steered in all_steering(source) for work in steered.state.works.values()}
    return known[_only(known, identifier, "work-", ErrorCode.WORK_NOT_FOUND)]


def find_intent(source: LogReader, identifier: str) -> Intent:
    """Return the one intent that `identifier` names or begins. Raises INTENT_NOT_FOUND."""
    known = {each.intent_id: each for steered in all_steering(source) for each in steered.state.intents.values()}
    return known[_only(known, identifier, "fb-", ErrorCode.INTENT_NOT_FOUND)]


def _only(known: Mapping[_Name, object], identifier: str, kind: str, code: ErrorCode) -> _Name:
    begun = kind + identifier.removeprefix(kind)
    fitting = [each for each in known if each.startswith(begun)]
    exact = [each for each in fitting if each == begun]
    if len(exact or fitting) != 1:
        found = f"{len(fitting)} ids begin with" if fitting else "Nothing is called"
        raise CodespaceError(code, f"{found} {identifier[:100]!r}.")
    return (exact or fitting)[0]


def intents_of(source: LogReader, steered: Steered, work: Work) -> list[IntentAnswer]:
    """Return the intents of a work with their texts, and the unattached ones of its workspace."""
    return [
        project_intent(steered.state, each, _text(source, steered, each))
        for each in in_order(steered.state, work.work_id)
    ]


def _text(source: LogReader, steered: Steered, intent: Intent) -> str | None:
    """Return what it says; None if that was pruned, or nothing was said."""
    stored = None if intent.body is None else source.read_body(steered.stream_id, intent.body.digest)
    return None if stored is None else stored.decode()
