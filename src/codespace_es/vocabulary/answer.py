"""What every command is answered with, and what every command is: two frozen models with JSON as their form."""

from typing import Any

from pydantic import BaseModel, ConfigDict, Field


class Notice(BaseModel):
    """Something that a caller should know although the call succeeded."""

    model_config = ConfigDict(frozen=True)

    kind: str = Field(description="What sort of warning, snake case.")
    message: str = Field(description="One sentence.")
    path: str | None = Field(default=None, description="The file it is about.")
    hunk: int | None = Field(default=None, description="1-based hunk within the file's section.")
    line: int | None = Field(default=None, description="1-based line of the file where the hunk was placed.")
    match: str | None = Field(default=None, description="How the hunk matched, if not exactly.")
    candidates: int | None = Field(default=None, description="Places that matched equally well.")


class Command(BaseModel):
    """A request. Its fields are the tool's arguments; unknown ones are left to the transport to warn about."""

    model_config = ConfigDict(frozen=True, extra="ignore", strict=True)


class Coordination(BaseModel):
    """That people wait for something in the work at hand; never what they say."""

    model_config = ConfigDict(frozen=True)

    work_id: str = Field(description="The work.")
    pending_user_items: int = Field(description="Instructions queued or claimed in it.")
    queue_revision: int = Field(description="Rises with every change of its queue.")


class PendingHead(BaseModel):
    """The pending action that is resolved next."""

    model_config = ConfigDict(frozen=True)

    id: str = Field(description="Name it in resolve.")
    label: str = Field(description="What it would do.")
    source_tool_name: str = Field(description="Who proposes it.")


class PendingHint(BaseModel):
    """That previews wait to be resolved in the session at hand. Source: the pending-actions paper, *bias*, 2."""

    model_config = ConfigDict(frozen=True)

    count: int = Field(description="Actions on its stack.")
    head: PendingHead | None = Field(default=None, description="The next one; absent when there is none.")
    hint: dict[str, str] = Field(default={"tool": "resolve"}, description="What to call.")
    bias: str = Field(description="prefer; require: nothing else may change the workspace before.")


class Answer(BaseModel):
    """A result. What doesn't apply is left out, never null."""

    model_config = ConfigDict(frozen=True)

    warnings: tuple[Notice, ...] = Field(default=(), description="What deserves a look.")
    coordination: Coordination | None = Field(default=None, description="Whether people wait in the work at hand.")
    pending_actions: PendingHint | None = Field(default=None, description="Whether previews wait to be resolved.")

    def to_wire(self) -> dict[str, Any]:
        """Return the JSON object of the answer."""
        wire = self.model_dump(mode="json", exclude_none=True)
        if not wire["warnings"]:
            del wire["warnings"]
        return wire
