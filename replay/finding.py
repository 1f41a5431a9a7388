"""What an audit finds: which law doesn't hold, where first, how often, and what that means."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType

from pydantic import BaseModel, ConfigDict, Field


class Law(StrEnum):
    """What holds of every log that only this product has written. Source: event catalogue, section 6."""

    FILE = "file"
    POSITIONS = "positions"
    CHAIN = "chain"
    VERSIONS = "versions"
    TOPICS = "topics"
    EVENTS = "events"
    FOLDS = "folds"
    STORE = "store"
    INSTANCE = "instance"
    WORKSPACE = "workspace"
    CLAIM = "claim"
    OPERATION = "operation"
    PROCESS = "process"
    APPROVAL = "approval"
    PENDING = "pending"
    BODIES = "bodies"
    OPEN_INDEX = "open_index"


MEANINGS: Mapping[Law, str] = MappingProxyType({
    Law.FILE: "The file is damaged, or was prepared by somebody else: copy the log away before it is written on.",
    Law.POSITIONS: "Events were removed from the log, or put into it, by something else than this product.",
    Law.CHAIN: "An event was changed, moved or replaced after it was written: from here on the log proves nothing.",
    Law.VERSIONS: "A stream lacks events, so what it says of its operation or server can't be relied on.",
    Law.TOPICS: "A newer version has written here: use that version to read the log.",
    Law.EVENTS: "An event can't be read as what it claims to be, so it was damaged or forged.",
    Law.FOLDS: "A stream tells a story that can't happen: damage, or a fault in the version that wrote it.",
    Law.STORE: "The log's own story is wrong: it may have been put together from parts.",
    Law.INSTANCE: "A server that wasn't running is said to have written: a shared identity, or a forgery.",
    Law.WORKSPACE: "A patch was decided for a directory that isn't on record, so it can't be recovered safely.",
    Law.CLAIM: "An operation key and its operation disagree, so a repeat of the call might run twice.",
    Law.OPERATION: "An operation's end doesn't fit its beginning, so its status can't be relied on.",
    Law.PROCESS: "How a command ended doesn't fit who asked for its end, so that can't be relied on.",
    Law.APPROVAL: "A hold and what it led to disagree, so that it ran once, or was allowed at all, can't be relied on.",
    Law.PENDING: "A preview and what applied it disagree, so that it was done once, or at all, can't be relied on.",
    Law.BODIES: "Recorded contents are missing or changed: an undo, a repeat or an audit of them is impossible.",
    Law.OPEN_INDEX: "The list of what is open is wrong: run `store reindex`; the events themselves are not affected.",
})
"""One sentence a law: what its breach means for whoever relies on the log."""


@dataclass(frozen=True, slots=True)
class Breach:
    """One place where one law doesn't hold."""

    law: Law
    position: int
    stream_id: str | None
    problem: str


class Finding(BaseModel):
    """A law that doesn't hold, with the first place where it doesn't."""

    model_config = ConfigDict(frozen=True)

    law: Law = Field(description="Which law.")
    position: int = Field(description="The first bad position; 0 for the file itself.")
    stream_id: str | None = Field(default=None, description="The stream there, where one is to blame.")
    problem: str = Field(description="What is wrong there, one sentence.")
    meaning: str = Field(description="What it means, one sentence.")
    count: int = Field(description="Breaches of this law in all.")


class Findings:
    """Collects breaches, keeping the first of each law: memory doesn't grow with the damage."""

    def __init__(self) -> None:
        self._first: dict[Law, Breach] = {}
        self._counts: dict[Law, int] = {}

    def add(self, law: Law, position: int, stream_id: str | None, problem: str) -> None:
        """Note one breach."""
        self.extend((Breach(law, position, stream_id, problem),))

    def extend(self, breaches: Iterable[Breach]) -> None:
        """Note every one of `breaches`."""
        for breach in breaches:
            self._counts[breach.law] = self._counts.get(breach.law, 0) + 1
            first = self._first.get(breach.law)
            if first is None or breach.position < first.position:
                self._first[breach.law] = breach

    def told(self) -> tuple[Finding, ...]:
        """Return a finding for each broken law, by position."""
        ordered = sorted(self._first.values(), key=lambda breach: (breach.position, list(Law).index(breach.law)))
        return tuple(
            Finding(
                law=breach.law, position=breach.position, stream_id=breach.stream_id, problem=breach.problem,
                meaning=MEANINGS[breach.law], count=self._counts[breach.law],
            )
            for breach in ordered
        )
