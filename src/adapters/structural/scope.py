"""Which files a structural search looks at, and as which language each is read.

Without a language, by the ending of each file's name. With one: the files of that language, and any other that a glob
names by its whole name or its ending (`*.h` as cpp), so that `src/**` as typescript leaves the stylesheets alone.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from adapters.structural.languages import LANGUAGES, language_called, language_of
from codespace_es.ports.files import Listing, WorkspaceFiles
from codespace_es.ports.structural_search import StructuralScope
from codespace_es.vocabulary.errors import CodespaceError, ErrorCode

_MAGIC = frozenset("*?[{\\")
_EVERYWHERE = frozenset({".", "./", "/"})


@dataclass(frozen=True, slots=True)
class FilesInScope:
    """What a scope names."""

    files: list[tuple[str, str]]
    """Path and language, sorted by the paths' bytes."""
    ignored_count: int
    unknown_count: int
    is_incomplete: bool


def wanted_language(name: str | None) -> str | None:
    """Return the language that a caller names, None if none is named. Raises UNSUPPORTED_LANGUAGE."""
    if name is None:
        return None
    language = language_called(name)
    if language is None:
        known = ", ".join(each.name for each in LANGUAGES)
        raise CodespaceError(
            ErrorCode.UNSUPPORTED_LANGUAGE, f"Unsupported language {name[:100]!r}. Supported: {known}.",
            detail={"field": "lang"},
        )
    return language


def files_in_scope(files: WorkspaceFiles, scope: StructuralScope) -> FilesInScope:
    """Return the files that `scope` names. Raises INVALID_ARGUMENT, UNSUPPORTED_LANGUAGE, FILE_OPERATION_FAILED."""
    language = wanted_language(scope.language)
    globs = [None if glob in _EVERYWHERE else glob for glob in scope.globs] or [None]
    found: set[str] = set()
    ignored_count, is_incomplete = 0, False
    for glob in globs:
        listing = _listing(files, glob)
        found.update(listing.paths)
        ignored_count = max(ignored_count, listing.ignored_count)
        is_incomplete = is_incomplete or listing.is_incomplete
    named = _names_and_endings(scope.globs)
    read_as = [(path, _read_as(path, language, named)) for path in sorted(found, key=str.encode)]
    known = [(path, each) for path, each in read_as if each is not None]
    return FilesInScope(known, ignored_count, len(read_as) - len(known), is_incomplete)


def _listing(files: WorkspaceFiles, glob: str | None) -> Listing:
    """Return the files that `glob` names, or those beneath the directory that it is."""
    try:
        listing = files.find(glob)
        if glob is not None and not listing.paths and not _MAGIC.intersection(glob):
            return files.find(glob.rstrip("/") + "/")
    except CodespaceError as error:
        raise error.with_detail(field="paths") if error.code is ErrorCode.INVALID_ARGUMENT else error from None
    return listing


def _read_as(path: str, language: str | None, named: frozenset[str]) -> str | None:
    by_name = language_of(path)
    if language is None or by_name == language:
        return by_name
    name = path.rpartition("/")[2]
    return language if name in named or name.rpartition(".")[2] in named else None


def _names_and_endings(globs: Iterable[str]) -> frozenset[str]:
    """Return the file names, and endings without their dots, that the last segments of `globs` say in full."""
    found: set[str] = set()
    for glob in globs:
        segment = glob.rpartition("/")[2]
        if not _MAGIC.intersection(segment):
            found.add(segment)
        ending = segment.rpartition(".")[2] if "." in segment else ""
        found.update(each for each in ending.strip("{}").split(",") if each and not _MAGIC.intersection(each))
    return frozenset(found)
