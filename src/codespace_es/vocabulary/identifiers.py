"""Identifiers: own string types, and the two that are computed from what they name.

Random ids come from the ids port; here is only their form. None of them is a credential.
"""

import hashlib
from typing import NewType
from uuid import UUID

OperationId = NewType("OperationId", str)
"""`op-` + UUIDv4: a recorded patch."""
ProcessId = NewType("ProcessId", str)
"""`proc-` + UUIDv4: a command that was started."""
ApprovalId = NewType("ApprovalId", str)
"""`appr-` + UUIDv4: a hold."""
WorkId = NewType("WorkId", str)
"""`work-` + UUIDv4: a piece of work that people steer."""
IntentId = NewType("IntentId", str)
"""`fb-` + UUIDv4: an instruction queued for a work."""
ActionId = NewType("ActionId", str)
"""`act-` + UUIDv4: a previewed action that waits to be resolved."""
InstanceId = NewType("InstanceId", str)
"""`inst-` + UUIDv4: one server process."""
AppendId = NewType("AppendId", str)
"""`apd-` + UUIDv4: one transaction on the log."""
RequestId = NewType("RequestId", str)
"""`req-` + UUIDv4: one tool call or command line."""
WorkspaceKey = NewType("WorkspaceKey", str)
"""`wsp-` + UUIDv5 of machine and canonical root: the identity of a workspace."""
StreamId = NewType("StreamId", str)
"""Any of the ids above, or `store`, `claim-…`, `pend-…`, `steer-…`: the name of one stream of events."""

STORE_STREAM = StreamId("store")
"""The one stream that tells the story of the log itself."""

_NAMESPACE = UUID("5e0b7a2c-6a52-5c1e-9c43-0d9ee34b8a11")
"""Ours alone; a change would give every workspace and claim another name, so it never changes."""


def workspace_key(machine_id: str, root: str) -> WorkspaceKey:
    """Return the identity of the workspace whose canonical root is `root` on machine `machine_id`."""
    return WorkspaceKey("wsp-" + _computed(machine_id, root))


def claim_stream(kind: str, name: str) -> StreamId:
    """Return the stream on which at most one holder at a time can claim `name` among claims of `kind`."""
    return StreamId("claim-" + _computed(kind, name))


def steering_stream(key: WorkspaceKey) -> StreamId:
    """Return the stream of the works and intents of a workspace."""
    return StreamId(f"steer-{key}")


def pending_stream(key: WorkspaceKey, work_id: str | None) -> StreamId:
    """Return the stream of the stack of pending actions of a work; None: of the workspace itself."""
    return StreamId("pend-" + _computed(key, work_id or ""))


def steered_workspace(stream_id: StreamId) -> WorkspaceKey:
    """Return the workspace whose works and intents `stream_id` has."""
    return WorkspaceKey(stream_id.removeprefix("steer-"))


def _computed(kind: str, name: str) -> str:
    """Return the UUIDv5 of a name, which may be anything that somebody asks for: lone surrogates have one too."""
    named = _NAMESPACE.bytes + f"{kind}\0{name}".encode("utf-8", "surrogatepass")
    return str(UUID(bytes=hashlib.sha1(named, usedforsecurity=False).digest()[:16], version=5))
