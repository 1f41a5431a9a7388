"""The laws of holds: a hold and its effect are never two facts, and its claim is taken exactly while it is open.

One function a law, over the events of one append. Source: event catalogue, sections 4 and 6 (laws 3 and 4).
"""

from collections.abc import Iterator

from codespace_es.aggregates.approval import (
    ApprovalConsumed,
    ApprovalCreated,
    ApprovalDenied,
    ApprovalExpired,
    ApprovalResuming,
    Unheld,
    hold_claim,
)
from codespace_es.aggregates.claim import ClaimReleased, ClaimTaken
from codespace_es.aggregates.operation import Minted, OperationFinished, OperationMinted
from codespace_es.aggregates.process import ProcessNotStarted, ProcessSpawned
from codespace_es.vocabulary.event import Event
from replay.finding import Breach, Law
from replay.memory import Memory, SeenAppend

ENDS_OF_A_HOLD = (ApprovalDenied, ApprovalExpired, ApprovalConsumed)


def a_hold_ends_with_its_effect(append: SeenAppend, _memory: Memory) -> Iterator[Breach]:
    """What a hold led to begins and ends in the appends in which the hold says so, and the other way round (law 3)."""
    if not append.is_whole:
        return
    consumed: dict[str, str | None] = {}
    resuming: dict[str, str] = {}
    for seen in append.events:
        if isinstance(seen.recorded.event, ApprovalConsumed):
            consumed[seen.stream_id] = seen.recorded.event.effect_id
        elif isinstance(seen.recorded.event, ApprovalResuming):
            resuming[seen.stream_id] = seen.recorded.event.effect_id
    begun, ended = dict(_begun(append)), dict(_ended(append))
    for seen in append.events:
        hold, event = seen.stream_id, seen.recorded.event
        if isinstance(event, ApprovalConsumed) and event.effect_id is not None and ended.get(event.effect_id) != hold:
            yield seen.breach(Law.APPROVAL, f"{event.effect_id}, which it led to, doesn't end or start with it")
        if isinstance(event, ApprovalResuming) and begun.get(event.effect_id) != hold:
            yield seen.breach(Law.APPROVAL, f"{event.effect_id}, which it runs as, isn't minted with it")
        hold_ended, hold_begun = ended.get(seen.stream_id), begun.get(seen.stream_id)
        if _is_end(event) and hold_ended is not None and consumed.get(hold_ended) != seen.stream_id:
            yield seen.breach(Law.APPROVAL, f"its hold {hold_ended} isn't consumed with it")
        is_running = isinstance(event, OperationMinted) and hold_begun not in consumed
        if is_running and hold_begun is not None and resuming.get(hold_begun) != seen.stream_id:
            yield seen.breach(Law.APPROVAL, f"its hold {hold_begun} isn't said to be resuming with it")


def _begun(append: SeenAppend) -> Iterator[tuple[str, str]]:
    """Yield each operation that begins here for a hold, and the hold."""
    for seen in append.events:
        event = seen.recorded.event
        if isinstance(event, OperationMinted) and event.approval_id is not None:
            yield seen.stream_id, event.approval_id


def _ended(append: SeenAppend) -> Iterator[tuple[str, str]]:
    """Yield each effect that consumes a hold here, and the hold: operations by their end, commands by their start."""
    for seen in append.events:
        event = seen.recorded.event
        approval_id: str | None = None
        if isinstance(event, OperationFinished) and isinstance(seen.before, Minted):
            approval_id = seen.before.minted.approval_id
        elif isinstance(event, ProcessSpawned | ProcessNotStarted):
            approval_id = event.request.approval_id
        if approval_id is not None:
            yield seen.stream_id, approval_id


def _is_end(event: Event) -> bool:
    return isinstance(event, OperationFinished | ProcessSpawned | ProcessNotStarted)


def a_hold_has_its_claim_while_it_is_open(append: SeenAppend, _memory: Memory) -> Iterator[Breach]:
    """A hold is opened with the claim of its request, and ended with its release, and neither is without (law 4)."""
    if not append.is_whole:
        return
    taken: dict[str, str] = {}
    released: dict[str, str] = {}
    for seen in append.events:
        if isinstance(seen.recorded.event, ClaimTaken):
            taken[seen.stream_id] = seen.recorded.event.holder_id
        elif isinstance(seen.recorded.event, ClaimReleased):
            released[seen.recorded.event.holder_id] = seen.stream_id
    ended = {seen.stream_id for seen in append.events if isinstance(seen.recorded.event, ENDS_OF_A_HOLD)}
    for seen in append.events:
        event = seen.recorded.event
        if isinstance(event, ApprovalCreated):
            if taken.get(hold_claim(event.workspace_key, event.fingerprint)) != seen.stream_id:
                yield seen.breach(Law.APPROVAL, "it doesn't claim its request in the same append")
        elif isinstance(event, ENDS_OF_A_HOLD):
            created = None if isinstance(seen.before, Unheld) else getattr(seen.before, "created", None)
            if created is not None and released.get(seen.stream_id) != hold_claim(
                created.workspace_key, created.fingerprint
            ):
                yield seen.breach(Law.APPROVAL, "it doesn't let go of its request in the same append")
        elif isinstance(event, ClaimReleased) and event.holder_id not in ended:
            yield seen.breach(Law.APPROVAL, f"{event.holder_id}, which held it, doesn't end in the same append")
