"""The answer to a patch: from `apply_patch`, `operation_revert` and every other tool that writes through a patch.

Stored as the operation's result, without what belongs to one call only (`replayed`, `work_id`).
Source: contract B1.6, B3.6, A1, A3.
"""

from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from codespace_es.vocabulary.answer import Answer
from codespace_es.vocabulary.file_change import FileChange, FileFinding


class ResultError(BaseModel):
    """The error that a `failed_*` operation ended with."""

    model_config = ConfigDict(frozen=True)

    code: str = Field(description="Error code.")
    message: str = Field(description="One sentence.")


_OF_ONE_CALL = {"replayed", "work_id", "coordination", "pending_actions"}


class PatchResult(Answer):
    """What a patch did, or would do."""

    status: str = Field(description="checked, applied, rejected, failed_rolled_back, failed_partial or unknown.")
    operation_id: str = Field(description="Ask operation_status for it at any time.")
    replayed: bool = Field(default=False, description="True: an earlier call's stored answer; nothing was run.")
    files: tuple[str, ...] = Field(default=(), description="Planned paths in hunk order.")
    changes: tuple[FileChange, ...] = Field(default=(), description="One entry a path.")
    diff: str | None = Field(default=None, description="Unified diff; for a preview only.")
    diff_truncated: bool | None = Field(default=None, description="The diff was cut at 64 KiB.")
    error: ResultError | None = Field(default=None, description="Why a failed_* operation failed.")
    reason: str | None = Field(default=None, description="recovered or unknown, when a crash was settled.")
    findings: tuple[FileFinding, ...] = Field(default=(), description="What stands at each path after a failure.")
    reverts: str | None = Field(default=None, description="The operation that this one undoes.")
    also_reverts: tuple[str, ...] | None = Field(default=None, description="Older ones that it undoes as well.")
    work_id: str | None = Field(default=None, description="Echo of the call's work_id.")

    def to_stored(self) -> bytes:
        """Return the canonical JSON that is kept for replays."""
        return self.model_dump_json(exclude_none=True, exclude=_OF_ONE_CALL).encode()

    @classmethod
    def from_stored(cls, stored: bytes, *, work_id: str | None) -> "PatchResult":
        """Return a stored answer as a replay to a call that named `work_id`."""
        return cls.model_validate_json(stored).model_copy(update={"replayed": True, "work_id": work_id})

    def to_wire(self) -> dict[str, Any]:
        """Return the JSON object of the answer; `files`, `changes` and `replayed` are always present."""
        wire = super().to_wire()
        if not wire["findings"]:
            del wire["findings"]
        return wire
