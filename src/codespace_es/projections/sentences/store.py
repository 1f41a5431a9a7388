"""The log and what it stands on: the store, its workspaces, its claims."""

from codespace_es.aggregates.claim import ClaimReleased, ClaimTaken
from codespace_es.aggregates.store import StoreBodiesRemoved, StoreCopied, StoreCreated
from codespace_es.aggregates.workspace import WorkspaceBound
from codespace_es.projections.sentences.words import Sentences


def _store_created(event: StoreCreated) -> str:
    return f"The log {event.store_id} begins, made by {event.software}."


def _store_bodies_removed(event: StoreBodiesRemoved) -> str:
    return f"Stored contents were {event.reason}: {event.count:,}, of {event.total_bytes:,} bytes together."


def _store_copied(event: StoreCopied) -> str:
    return f"The log goes on here, copied from {event.from_store_id} at position {event.from_position}."


def _workspace_bound(event: WorkspaceBound) -> str:
    return f"Workspace {event.workspace_id} stands for the directory {event.root}."


def _claim_taken(event: ClaimTaken) -> str:
    return f"The {event.kind.replace('_', ' ')} was taken by {event.holder_id}."


def _claim_released(event: ClaimReleased) -> str:
    return f"The hold was let go by {event.holder_id}."


STORE_SENTENCES: Sentences = {
    StoreCreated: _store_created,
    StoreBodiesRemoved: _store_bodies_removed,
    StoreCopied: _store_copied,
    WorkspaceBound: _workspace_bound,
    ClaimTaken: _claim_taken,
    ClaimReleased: _claim_released,
}
