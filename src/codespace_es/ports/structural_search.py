"""Searching and rewriting code by its structure. Nothing is ever written by it.

A pattern is code of the language, with `$NAME` for one node of any kind and `$$$NAME` for any number of them. All of it
runs elsewhere than on the event loop, under a time limit. What can't be read or parsed is listed, never passed over in
silence.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from codespace_es.ports.files import WorkspaceFiles
from codespace_es.vocabulary.file_change import FileImage


@dataclass(frozen=True, slots=True)
class StructuralScope:
    """Where to look, and how patterns are read."""

    globs: tuple[str, ...] = ()
    """Files, directories or globs; empty: everywhere."""
    language: str | None = None
    """A name or alias; None: by each file's ending."""
    selector: str | None = None
    """Kind of node: patterns are contexts then, and the first node of this kind in them is what is looked for."""


@dataclass(frozen=True, slots=True)
class Rewriting:
    """One pattern and what each of its matches becomes."""

    pattern: str
    replacement: str


@dataclass(frozen=True, slots=True)
class PatternReading:
    """How a pattern was read in one language: what to tell who finds nothing."""

    language: str
    pattern: str
    kind: str = ""
    """Kind of node that is looked for."""
    is_broken: bool = False
    """The pattern alone isn't whole code of the language."""
    fault: str | None = None
    """Why it can't be used in this language at all; its files weren't looked at then."""


@dataclass(frozen=True, slots=True)
class SkippedFile:
    """A file in scope that wasn't looked at."""

    path: str
    reason: str


@dataclass(frozen=True, slots=True)
class Coverage:
    """What a search looked at."""

    files_searched: int = 0
    ignored_count: int = 0
    """Files and directories left out by ignore rules."""
    unknown_count: int = 0
    """Files in scope whose language isn't known."""
    is_incomplete: bool = False
    """A cap of the walk or the time limit cut the search."""
    skipped: Sequence[SkippedFile] = ()
    readings: Sequence[PatternReading] = ()


@dataclass(frozen=True, slots=True)
class StructuralMatch:
    """One matching node. Lines and columns are 1-based, columns in code points; the end is the first place after it."""

    path: str
    line: int
    column: int
    end_line: int
    end_column: int
    text: str
    captures: Mapping[str, str] = field(default_factory=dict)
    """Name -> text of each metavariable, cut like `text`."""


@dataclass(frozen=True, slots=True)
class StructuralFindings:
    """A page of matches, by path and place."""

    matches: Sequence[StructuralMatch]
    is_truncated: bool
    """More matches follow this page."""
    coverage: Coverage


@dataclass(frozen=True, slots=True)
class RewrittenFile:
    """One file as it was read and as it would be."""

    path: str
    before: FileImage
    after: bytes
    replacement_count: int
    broken_line: int | None = None
    """1-based: where it doesn't parse any more although it did before."""


@dataclass(frozen=True, slots=True)
class RewriteFindings:
    """What a rewrite would do: files that would change, by path. Outside of its matches every byte is as it was."""

    files: Sequence[RewrittenFile]
    match_count: int
    """Matches, those included whose replacement is what stands there already."""
    is_limit_reached: bool
    """There are more matches, or more files, than were asked for or are allowed."""
    unbound: Sequence[str]
    """Metavariables of replacements that their pattern doesn't have: they become nothing."""
    coverage: Coverage


class StructuralSearch(Protocol):
    """Finds code, and says what it would become.

    Errors of both methods: UNSUPPORTED_LANGUAGE; INVALID_ARGUMENT for a glob, a pattern, a replacement or a selector
    that can't be used in any language it would be used in (`field` in the detail); FILE_OPERATION_FAILED when the root
    can't be listed; TOOL_FAILED when there is nobody to look, since the workers can't start. A cancelled call ends
    soon, and leaves nothing behind.
    """

    async def find(
        self, files: WorkspaceFiles, scope: StructuralScope, pattern: str, *, limit: int, offset: int
    ) -> StructuralFindings:
        """Return the matches `offset` to `offset + limit`, as far as the time limit allows."""
        ...

    async def rewrite(
        self, files: WorkspaceFiles, scope: StructuralScope, rewritings: Sequence[Rewriting], *, limit: int | None
    ) -> RewriteFindings:
        """Return what the first `limit` matches would become (None: all), in order of path and place.

        Each pattern is matched against the files as they are. Raises INVALID_ARGUMENT when replacements overlap, and
        TIMEOUT: a rewrite is of all files or of none.
        """
        ...
