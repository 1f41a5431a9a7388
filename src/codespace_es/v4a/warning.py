"""What a caller is told beside success: whatever a patch did that its author may not have meant."""

from dataclasses import asdict, dataclass
from typing import Any, Literal, TypeAlias

from codespace_es.v4a.chunk_locator import MatchKind

WarningKind: TypeAlias = Literal[
    "hunk_match", "seek_match", "seek_ignored", "blank_line_absent", "final_newline_added", "hard_link_broken"
]


@dataclass(frozen=True, slots=True)
class PatchWarning:
    """One thing to look at. Source: V4A decision 5 for `path`, `hunk`, `line`, `match` and `candidates`."""

    kind: WarningKind
    path: str
    message: str
    hunk: int | None = None
    """1-based within its section."""
    line: int | None = None
    """1-based line of the file as the section found it."""
    match: MatchKind | None = None
    candidates: int | None = None
    """Places that would have matched equally well, the one taken included."""

    def to_wire(self) -> dict[str, Any]:
        """Return it as JSON, without what doesn't apply."""
        return {key: value for key, value in asdict(self).items() if value is not None}
