"""`ast_grep`: which code matches a pattern, and why nothing does. No lock, no event."""

from collections.abc import Sequence

from pydantic import BaseModel, Field

from codespace_es.admission import admit
from codespace_es.ports.structural_search import Coverage, PatternReading, StructuralScope
from codespace_es.ports.world import World
from codespace_es.vocabulary import limits
from codespace_es.vocabulary.answer import Answer, Command, Notice
from codespace_es.vocabulary.errors import CodespaceError, ErrorCode
from codespace_es.vocabulary.event import Caller

_LANGUAGES_NAMED_MAX = 5


class MatchCode(Command):
    """Ask which code matches a pattern."""

    workspace_id: str = Field(description="Workspace to search in.")
    pat: str = Field(description="Code; $A: one node, $$$A: any number.")
    paths: list[str] = Field(default_factory=list, description="Files, directories, globs.")
    lang: str | None = Field(default=None, description="Default: by each file's ending.")
    selector: str | None = Field(default=None, description="Node kind to match; pat is its context.")
    limit: int = Field(default=limits.STRUCTURAL_MATCHES_DEFAULT, description="1..1000; default 50.")
    offset: int = Field(default=0, ge=0, description="Matches to skip.")
    work_id: str | None = Field(default=None, description="Selects the hint only.")


class CodeMatch(BaseModel):
    """One matching node."""

    path: str
    line: int = Field(description="1-based.")
    column: int = Field(description="1-based, in code points.")
    end_line: int
    end_column: int = Field(description="Of the first character after it.")
    text: str = Field(description="At most 500 characters.")
    captures: dict[str, str] | None = Field(default=None, description="What each metavariable stands for.")


class SkippedPath(BaseModel):
    """A file that wasn't looked at."""

    path: str
    reason: str


class CodePage(Answer):
    """A page of matches, by path and place."""

    matches: tuple[CodeMatch, ...] = Field(description="In order of path and place.")
    truncated: bool = Field(description="Not all was returned.")
    incomplete: bool = Field(description="A cap or the time limit cut the search.")
    files_searched: int = Field(description="Files whose text was looked at.")
    ignored_count: int = Field(description="Files and directories left out by ignore rules.")
    skipped: tuple[SkippedPath, ...] | None = Field(default=None, description="Files that couldn't be looked at.")
    next_offset: int | None = Field(default=None, description="Continue here.")


async def match_code(world: World, command: MatchCode, _caller: Caller) -> CodePage:
    """Return the page. Raises WORKSPACE_NOT_FOUND, UNAUTHORIZED, OUTPUT_LIMIT and the codes of the port."""
    workspace = admit(world.workspaces, command.workspace_id, "read")
    if not 1 <= command.limit <= limits.STRUCTURAL_MATCHES_MAX:
        raise CodespaceError(
            ErrorCode.OUTPUT_LIMIT,
            f"limit is {command.limit}; it has to be from 1 to {limits.STRUCTURAL_MATCHES_MAX}.",
            detail={"field": "limit"},
        )
    scope = checked_scope(command.paths, command.lang, command.selector)
    require_short("pat", command.pat)
    found = await world.structural.find(
        world.files.open(workspace.root), scope, command.pat, limit=command.limit, offset=command.offset
    )
    coverage = found.coverage
    is_none = not found.matches and not command.offset
    return CodePage(
        matches=tuple(
            CodeMatch(
                path=each.path, line=each.line, column=each.column, end_line=each.end_line,
                end_column=each.end_column, text=each.text, captures=dict(each.captures) or None,
            )
            for each in found.matches
        ),
        truncated=found.is_truncated or coverage.is_incomplete,
        incomplete=coverage.is_incomplete,
        files_searched=coverage.files_searched,
        ignored_count=coverage.ignored_count,
        skipped=skipped_paths(coverage),
        next_offset=command.offset + len(found.matches) if found.is_truncated and found.matches else None,
        warnings=(*(hints_of(coverage) if is_none else ()), *remarks_of(coverage)),
    )


# What both structural tools check and tell


def checked_scope(paths: Sequence[str], language: str | None, selector: str | None) -> StructuralScope:
    """Return where to look. Raises INVALID_ARGUMENT for what is too much."""
    if len(paths) > limits.STRUCTURAL_GLOBS_MAX:
        raise CodespaceError(
            ErrorCode.INVALID_ARGUMENT,
            f"paths has {len(paths)} entries; the limit is {limits.STRUCTURAL_GLOBS_MAX}: a glob names many files.",
            detail={"field": "paths"},
        )
    if selector is not None:
        require_short("selector", selector)
    return StructuralScope(tuple(paths), language, selector)


def require_short(field: str, text: str) -> None:
    """Pass if `text` isn't too long for a pattern or its replacement. Raises INVALID_ARGUMENT."""
    size = len(text.encode(errors="surrogatepass"))
    if size > limits.STRUCTURAL_PATTERN_BYTES_MAX:
        raise CodespaceError(
            ErrorCode.INVALID_ARGUMENT,
            f"{field} has {size} bytes; the limit is {limits.STRUCTURAL_PATTERN_BYTES_MAX}.",
            detail={"field": field},
        )


def skipped_paths(coverage: Coverage) -> tuple[SkippedPath, ...] | None:
    """Return the first files that weren't looked at, None if there are none."""
    told = tuple(
        SkippedPath(path=each.path, reason=each.reason) for each in coverage.skipped[: limits.STRUCTURAL_LISTED_MAX]
    )
    return told or None


def remarks_of(coverage: Coverage) -> tuple[Notice, ...]:
    """Return what is to be known of a search whatever it found."""
    more = len(coverage.skipped) - limits.STRUCTURAL_LISTED_MAX
    if more <= 0:
        return ()
    return (Notice(kind="more_skipped", message=f"{more} more files couldn't be looked at and aren't listed."),)


def hints_of(coverage: Coverage) -> tuple[Notice, ...]:
    """Return why nothing may have matched."""
    faulty = [each for each in coverage.readings if each.fault is not None]
    usable = [each for each in coverage.readings if each.fault is None]
    hints = []
    if faulty:
        hints.append(Notice(
            kind="pattern_not_in_language",
            message=f"{_languages(faulty)} wasn't searched: there the pattern can't be used: {faulty[0].fault}.",
        ))
    if coverage.files_searched == 0:
        hints.append(Notice(kind="no_files", message=_no_files(coverage)))
    elif usable:
        hints.append(Notice(kind="no_match", message=_no_match(usable)))
    return tuple(hints)


def _no_files(coverage: Coverage) -> str:
    reasons = []
    if coverage.unknown_count:
        reasons.append(
            f"{coverage.unknown_count} files in paths are of another language, or of none that is known by their "
            "ending: name lang, and in paths their ending"
        )
    if coverage.ignored_count:
        reasons.append(f"ignore rules left out {coverage.ignored_count}")
    if coverage.skipped:
        reasons.append(f"{len(coverage.skipped)} couldn't be looked at")
    return f"No file was searched: {'; '.join(reasons) or 'paths names none'}."


def _no_match(readings: Sequence[PatternReading]) -> str:
    whole = [each for each in readings if not each.is_broken]
    if not whole:
        return (
            f"Nothing matched. By itself the pattern isn't whole code of {_languages(readings)}, so it may match "
            "nothing at all: write a whole expression or statement, or put it into a context that is whole and name "
            "in selector the kind of node that you mean."
        )
    kinds = ", ".join(dict.fromkeys(f"{each.kind} in {each.language}" for each in whole[:_LANGUAGES_NAMED_MAX]))
    return (
        f"Nothing matched. The pattern was read as {kinds}, and only such nodes match it. Where code reads otherwise "
        "in its place, give the context and a selector, as in Go: pat 'func f() { fmt.Println($A) }', selector "
        "'call_expression'."
    )


def _languages(readings: Sequence[PatternReading]) -> str:
    names = list(dict.fromkeys(each.language for each in readings))
    more = len(names) - _LANGUAGES_NAMED_MAX
    return ", ".join(names[:_LANGUAGES_NAMED_MAX]) + (f" and {more} more" if more > 0 else "")
