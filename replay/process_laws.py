"""The laws of commands: their key is claimed with them, and whoever is said to have ended them has asked for it.

One function a law, over the events of one append. That an exit code stands only with `exited`, and that nothing follows
an exit, are rules of the events and folds themselves. Source: event catalogue, section 6 (laws 4 and 5); decision 19.
"""

from collections.abc import Iterator

from codespace_es.aggregates.process import ProcessExited, ProcessNotStarted, ProcessSpawned, Running
from replay.claim_laws import begun_in, unless_claimed
from replay.finding import Breach, Law
from replay.memory import Memory, SeenAppend


def a_key_begins_with_its_command(append: SeenAppend, memory: Memory) -> Iterator[Breach]:
    """A command's key is claimed in its own append; its directory is on record before it may run."""
    begun = begun_in(append)
    for seen in append.events:
        event = seen.recorded.event
        if not isinstance(event, ProcessSpawned | ProcessNotStarted):
            continue
        request = event.request
        key = request.workspace_key
        if isinstance(event, ProcessSpawned) and not memory.is_bound(key) and key not in memory.damaged:
            yield seen.breach(Law.WORKSPACE, f"the directory of {key} isn't on record")
        if request.operation_key is not None and append.is_whole:
            yield from unless_claimed(seen, request.operation_key, request.fingerprint, begun)


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
            yield seen.breach(Law.PROCESS, f"it is {event.termination}, but asked for was {cause or 'nothing'}")
