"""The laws of claims: a name is claimed in the append in which its holder begins. Source: event catalogue, 6."""

from collections.abc import Iterator, Mapping

from codespace_es.aggregates.claim import ClaimTaken
from codespace_es.aggregates.operation import OperationMinted
from codespace_es.vocabulary.event import Digest
from codespace_es.vocabulary.identifiers import claim_stream
from replay.finding import Breach, Law
from replay.memory import Memory, Seen, SeenAppend


def a_claim_has_its_holder(append: SeenAppend, _memory: Memory) -> Iterator[Breach]:
    """A claim and the beginning of its holder stand in one append, with one fingerprint (law 4)."""
    if not append.is_whole:
        return
    begun = begun_in(append)
    for seen in append.events:
        event = seen.recorded.event
        if isinstance(event, ClaimTaken) and event.holder_id not in begun:
            yield seen.breach(Law.CLAIM, f"its holder {event.holder_id} doesn't begin in the same append")
        if isinstance(event, OperationMinted) and event.operation_key is not None:
            yield from unless_claimed(seen, event.operation_key, event.fingerprint, begun)


def begun_in(append: SeenAppend) -> Mapping[str, Seen]:
    """Return the first events of the streams that begin in an append."""
    return {seen.stream_id: seen for seen in append.events if seen.recorded.version == 1}


def unless_claimed(seen: Seen, key: str, fingerprint: Digest, begun: Mapping[str, Seen]) -> Iterator[Breach]:
    """Yield what is wrong with the claim of the key of what begins at `seen`."""
    claim = begun.get(claim_stream("operation_key", key))
    taken = None if claim is None else claim.recorded.event
    if not isinstance(taken, ClaimTaken) or str(taken.holder_id) != seen.stream_id:
        yield seen.breach(Law.CLAIM, "its operation key isn't claimed in the same append")
    elif taken.fingerprint != fingerprint:
        yield seen.breach(Law.CLAIM, "its fingerprint isn't that of its claim")
