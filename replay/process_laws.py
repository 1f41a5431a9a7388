"""The laws of commands: their key is claimed with them, and whoever is said to have ended them has asked for it.

One function a law, over the events of one append. That an exit code stands only with `exited`, and that nothing follows
an exit, are rules of the events and folds themselves. Source: event catalogue, section 6 (laws 4 and 5); decision 19.
"""

from collections.abc import Iterator

from codespace_es.aggregates.claim import ClaimTaken
from codespace_es.aggregates.process import ProcessExited, ProcessNotStarted, ProcessSpawned, Running
from codespace_es.vocabulary.identifiers import claim_stream
from replay.finding import Breach, Law
from replay.memory import Memory, Seen, SeenAppend


def a_key_begins_with_its_command(append: SeenAppend, memory: Memory) -> Iterator[Breach]:
    """A command's key is claimed in its own append; its directory is on record before it may run."""
    claims = {seen.stream_id: seen.recorded.event for seen in append.events if seen.recorded.version == 1}
    for seen in append.events:
        event = seen.recorded.event
        if not isinstance(event, ProcessSpawned | ProcessNotStarted):
            continue
        request = event.request
        key = request.workspace_key
        if isinstance(event, ProcessSpawned) and not memory.is_bound(key) and key not in memory.damaged:
            yield _breach(Law.WORKSPACE, seen, f"the directory of {key} isn't on record")
        if request.operation_key is None or not append.is_whole:
            continue
        taken = claims.get(str(claim_stream("operation_key", request.operation_key)))
        if not isinstance(taken, ClaimTaken) or str(taken.holder_id) != seen.stream_id:
            yield _breach(Law.CLAIM, seen, "its operation key isn't claimed in the same append")
        elif taken.fingerprint != request.fingerprint:
            yield _breach(Law.CLAIM, seen, "its fingerprint isn't that of its claim")


def an_end_has_its_cause(append: SeenAppend, _memory: Memory) -> Iterator[Breach]:
    """A command timed out, or was terminated, exactly when that is who first asked for its end."""
    for seen in append.events:
        event = seen.recorded.event
        if not isinstance(event, ProcessExited) or not isinstance(seen.before, Running):
            continue
        requested = seen.before.end_requested
        cause = None if requested is None else "timeout" if requested.cause == "timeout" else "terminated"
        told = event.termination if event.termination in ("timeout", "terminated") else None
        if told != cause and event.termination != "unknown":
            yield _breach(Law.PROCESS, seen, f"it is {event.termination}, but asked for was {cause or 'nothing'}")


def _breach(law: Law, seen: Seen, problem: str) -> Breach:
    recorded = seen.recorded
    text = f"{recorded.stream_id}@{recorded.version} ({recorded.topic}): {problem}."
    return Breach(law, recorded.position, recorded.stream_id, text)
