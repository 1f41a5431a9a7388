"""A checkpoint: the head of a log, written down and signed, so that a later look can tell if its end was cut off.

Nothing inside a log can prove that its newest events are still there. A checkpoint that is kept elsewhere can: the log
must still have that hash at that position. It is signed with a key of the data directory (HMAC-SHA-256), so that a
checkpoint itself can't be made up by whoever has a copy of the log alone.
"""

import hmac
import json
from datetime import datetime
from hashlib import sha256
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from codespace_es.aggregates.store import StoreCreated
from codespace_es.vocabulary.identifiers import STORE_STREAM
from replay.source import LogSource, first_of
from replay.verify import Anchor, VerifyReport


class Checkpoint(BaseModel):
    """A log's head at one time."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    format: Literal[1] = Field(default=1, description="Form of this file.")
    store_id: str = Field(description="Which log; empty for a log without an event.")
    position: int = Field(ge=0, description="Position of its newest event.")
    hash: str = Field(pattern="^[0-9a-f]{64}$", description="Hash of that event.")
    made_at: datetime = Field(description="UTC.")
    software: str = Field(description="Name/version that made it.")
    signature: str = Field(default="", description="HMAC-SHA-256 over the other fields, hex.")

    @property
    def anchor(self) -> Anchor:
        """What the log must still have; nothing of a log that had no event."""
        return Anchor(self.position, self.hash)

    def signed(self, key: bytes) -> "Checkpoint":
        """Return the checkpoint with the signature of `key`."""
        return self.model_copy(update={"signature": self._mac(key)})

    def is_signed_by(self, key: bytes) -> bool:
        """Return whether the signature is that of `key`."""
        return hmac.compare_digest(self._mac(key).encode(), self.signature.encode())

    def _mac(self, key: bytes) -> str:
        told = self.model_dump(mode="json", exclude={"signature"})
        text = json.dumps(told, sort_keys=True, separators=(",", ":"))
        return hmac.new(key, b"codespace-es checkpoint\n" + text.encode(), sha256).hexdigest()


def make_checkpoint(
    source: LogSource, report: VerifyReport, *, made_at: datetime, software: str, key: bytes
) -> Checkpoint:
    """Return a signed checkpoint of a log that was just found whole."""
    assert report.is_ok, "a damaged log has no checkpoint"
    return Checkpoint(
        store_id=store_id_of(source), position=report.head_position, hash=report.head_hash, made_at=made_at,
        software=software,
    ).signed(key)


def store_id_of(source: LogSource) -> str:
    """Return the identity of a log, nothing for one without an event. Raises what `walk_stream` raises."""
    first = first_of(source, STORE_STREAM)
    created = None if first is None else first.event
    return created.store_id if isinstance(created, StoreCreated) else ""
