"""What an event is: a frozen fact with a stable topic, and the envelope that the append puts around it.

An event says what happened and nothing about storage. Position, stream, version, time and speaker are the envelope's.
Source: the event catalogue, section 1.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, ClassVar, Literal, Protocol, runtime_checkable

from pydantic import BaseModel, ConfigDict, Field

from codespace_es.vocabulary.errors import CodespaceError, ErrorCode
from codespace_es.vocabulary.identifiers import AppendId, InstanceId, RequestId, StreamId

Channel = Literal["mcp", "http", "cli", "web", "elicitation", "recovery", "timer"]
"""Who spoke."""

Digest = str
"""`sha256:` + 64 lower-case hex digits of the raw bytes."""

Version = str
"""A `Digest`, or `absent` for a file that isn't there."""

ABSENT: Version = "absent"


class Event(BaseModel):
    """A fact. Subclasses are named noun + participle and carry the topic they are stored under, for ever."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    TOPIC: ClassVar[str]


@runtime_checkable
class Superseded(Protocol):
    """An event class of an old topic, kept for the logs that hold it: read, never written any more."""

    def upcast(self) -> Event:
        """Return what a newer class says instead, from what this one says alone."""
        ...


class Body(BaseModel):
    """Names bytes that stand in the body store: whatever a caller or a file can make large or secret."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    digest: Digest = Field(description="SHA-256 of the bytes as stored.")
    size_bytes: int = Field(ge=0, description="Length of the bytes as stored.")


class Fault(BaseModel):
    """An error as an event remembers it, so that a replay answers with the same code and message."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    code: ErrorCode = Field(description="The contract's code.")
    message: str = Field(description="One sentence, as it was answered.")
    detail: Mapping[str, Any] | None = Field(default=None, description="What else was answered, JSON.")

    @classmethod
    def of(cls, error: CodespaceError) -> "Fault":
        """Return what to remember of `error`."""
        return cls(code=error.code, message=error.message, detail=error.detail or None)

    def to_error(self) -> CodespaceError:
        """Return the error again, to be answered a second time."""
        return CodespaceError(self.code, self.message, detail=self.detail)


class Envelope(BaseModel):
    """Who recorded an event, when and for whom; the same on every event of one append."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    recorded_at: datetime = Field(description="UTC, milliseconds. Orders nothing: positions order.")
    instance_id: InstanceId = Field(description="The server process that did it.")
    append_id: AppendId = Field(description="One transaction: answers `is this stored append mine?`.")
    request_id: RequestId = Field(description="One tool call or command line, over all its streams.")
    channel: Channel = Field(description="Who spoke.")
    client: str | None = Field(default=None, description="Name/version as the client gave it.")


async def _say_nothing(_seconds: float, _awaited: str) -> None:
    """Report no progress: for callers that didn't ask for it."""


@dataclass(frozen=True, slots=True)
class Caller:
    """On whose behalf a command is handled; becomes part of the envelope."""

    channel: Channel
    request_id: RequestId
    client: str | None = None
    report_wait: Callable[[float, str], Awaitable[None]] = field(default=_say_nothing, compare=False, repr=False)
    """Told the seconds waited, and for what, about every 5 s while a call waits."""


class RecordedEvent:
    """An event as it stands in the log. The envelope is decoded when first asked for, since folds don't need it."""

    __slots__ = ("_envelope", "_envelope_json", "event", "position", "stream_id", "version")

    def __init__(  # positional too: a replay makes one for every event
        self, position: int, stream_id: StreamId, version: int, event: Event, envelope_json: bytes
    ) -> None:
        self.position = position
        """1-based place in the whole log, gapless."""
        self.stream_id = stream_id
        self.version = version
        """1-based place in its stream, gapless."""
        self.event = event
        self._envelope_json = envelope_json
        self._envelope: Envelope | None = None

    @property
    def topic(self) -> str:
        """The name the event is stored under."""
        return self.event.TOPIC

    @property
    def envelope(self) -> Envelope:
        """Who recorded it and when."""
        if self._envelope is None:
            self._envelope = Envelope.model_validate_json(self._envelope_json)
        return self._envelope

    def __repr__(self) -> str:
        return f"<{self.position} {self.stream_id}@{self.version} {self.topic}>"
