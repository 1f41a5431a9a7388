"""What a process of tools says, read as from a stranger: whatever isn't of this form ends it, never the server."""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from codespace_es.vocabulary import limits


class _Said(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class SaidTool(_Said):
    """One tool of a source."""

    name: str = Field(pattern=r"^[A-Za-z0-9_-]{1,64}$")
    label: str = Field(min_length=1, max_length=limits.TOOL_TEXT_CHARACTERS_MAX)
    description: str = Field(min_length=1, max_length=limits.TOOL_TEXT_CHARACTERS_MAX)
    parameters: dict[str, Any]
    annotations: dict[Literal["readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"], bool]
    timeout: float = Field(gt=0, le=limits.TOOL_CALL_SECONDS_MAX)


class Loaded(_Said):
    """A source was loaded."""

    kind: Literal["loaded"]
    tools: list[SaidTool] = Field(max_length=limits.TOOLS_OF_SOURCE_MAX)
    problems: list[str]
    """Why some of its tools can't be used."""
    actions: list[str]
    """Names under which it has registered callbacks."""


class Refused(_Said):
    """A source gives nothing."""

    kind: Literal["refused"]
    problem: str


class SaidResult(_Said):
    """What `execute` or a callback returned."""

    content: str
    details: Any = None
    is_error: bool


class Done(_Said):
    """A call is over; None: its callback isn't there, or returned nothing."""

    kind: Literal["done"]
    call: str
    result: SaidResult | None


class SaidError(_Said):
    """The error that an author let through, as the server had given it, or as arguments were refused."""

    code: str
    message: str
    detail: dict[str, Any]


class Failed(_Said):
    """A call has failed."""

    kind: Literal["failed"]
    call: str
    problem: str
    error: SaidError | None = None


class Asks(_Said):
    """A call asks something of the server."""

    kind: Literal["asks"]
    call: str
    request: int
    method: str
    parameters: dict[str, Any]


Said = Loaded | Refused | Done | Failed | Asks

SAID: TypeAdapter[Said] = TypeAdapter(Said)
"""Raises ValidationError for anything else."""
