"""Lines that match, over the files that a glob names.

Regular expressions run on RE2, in linear time, on blocks of whole lines, and the clock is read between blocks; so
neither a pattern nor a file can hold a search for long. A match never spans lines; CR LF ends a line as LF does.
"""

import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import re2

from adapters.beneath import shown_name
from adapters.files.finding import named_files
from adapters.files.opening import open_regular
from adapters.files.walking import is_gone
from codespace_es.ports.files import SearchFindings, SearchMatch, SearchQuery
from codespace_es.vocabulary.errors import CodespaceError, ErrorCode
from codespace_es.vocabulary.limits import (
    KIB,
    SEARCH_CONTEXT_LINES_MAX,
    SEARCH_FILE_BYTES_MAX,
    SEARCH_LINE_BYTES_MAX,
    SEARCH_LINE_CHARACTERS_MAX,
    SEARCH_PAGE_CHARACTERS_MAX,
    SEARCH_PATTERN_BYTES_MAX,
    SEARCH_PROGRAM_STEPS_MAX,
    SEARCH_SECONDS_MAX,
)

_BINARY_PROBE_BYTES = 8 * KIB
_BLOCK_BYTES = 64 * KIB
_LEAD_CHARACTERS = 100

_Locate = Callable[[bytes, int, int], int]
"""(text, from, to) -> offset of the first match that begins there, or -1."""


@dataclass(slots=True)
class _Page:
    """Matches gathered for the answer, and how far the search came."""

    skip: int
    limit: int
    matches: list[SearchMatch]
    characters: int = 0
    is_truncated: bool = False
    is_incomplete: bool = False

    def add(self, text: bytes, start: int, at: int, *, path: str, line: int, context: int) -> bool:
        """Take the line of `text` from `start` on, which matches at `at`; return whether more may come."""
        if self.skip > 0:
            self.skip -= 1
            return True
        if len(self.matches) >= self.limit or self.characters >= SEARCH_PAGE_CHARACTERS_MAX:
            self.is_truncated = True
            return False
        match = _match_of(text, start, at, path=path, line=line, context=context)
        self.characters += len(match.text) + sum(map(len, match.before)) + sum(map(len, match.after))
        self.matches.append(match)
        return True


def search(
    root_fd: int, query: SearchQuery, *, seconds_max: float = SEARCH_SECONDS_MAX,
    clock: Callable[[], float] = time.monotonic,
) -> SearchFindings:
    """Return one page of matching lines. Raises INVALID_ARGUMENT for a bad pattern or glob, FILE_OPERATION_FAILED."""
    deadline = clock() + seconds_max
    locate = _locator(query)
    found = named_files(root_fd, query.glob, include_ignored=query.include_ignored)
    context = min(query.context_lines, SEARCH_CONTEXT_LINES_MAX)
    page = _Page(query.offset, query.limit, [], is_incomplete=found.is_incomplete)
    line_bytes_max = SEARCH_FILE_BYTES_MAX if _is_literal(query) else SEARCH_LINE_BYTES_MAX
    files_searched = 0
    for path in found.paths:
        if clock() >= deadline:
            page.is_incomplete = True
            break
        text = _text_of(root_fd, path, page)
        if text is None:
            continue
        files_searched += 1
        shown = shown_name(path)
        lines = _matching_lines(
            text, locate, page, line_bytes_max=line_bytes_max, is_over=lambda: clock() >= deadline
        )
        for start, at, line in lines:
            if not page.add(text, start, at, path=shown, line=line, context=context):
                break
        if page.is_truncated:
            break
    return SearchFindings(page.matches, page.is_truncated, page.is_incomplete, files_searched, found.ignored_count)


def _checked_pattern(query: SearchQuery) -> bytes:
    """Return the pattern in UTF-8. Raises INVALID_ARGUMENT."""
    try:
        encoded = query.pattern.encode()
    except UnicodeEncodeError:
        raise _bad_pattern("it holds a lone surrogate") from None
    if not encoded:
        raise _bad_pattern("it is empty")
    if len(encoded) > SEARCH_PATTERN_BYTES_MAX:
        raise _bad_pattern(f"it is longer than {SEARCH_PATTERN_BYTES_MAX} bytes")
    if b"\n" in encoded:
        raise _bad_pattern("a search goes line by line, so it can't hold a line end")
    return encoded


def _is_literal(query: SearchQuery) -> bool:
    return query.is_case_sensitive and not query.is_regex


def _locator(query: SearchQuery) -> _Locate:
    """Return what finds the query's pattern. Raises INVALID_ARGUMENT."""
    encoded = _checked_pattern(query)
    if _is_literal(query):
        return lambda text, start, end: text.find(encoded, start, end)
    options = re2.Options()
    options.log_errors = False
    options.never_nl = True
    options.never_capture = True
    options.case_sensitive = query.is_case_sensitive
    options.literal = not query.is_regex
    try:
        # Compiled alone first: a pattern can't close our group and leave it.
        automaton = re2.compile(encoded, options)
        if query.is_regex:
            automaton = re2.compile(b"(?m:" + encoded + b")", options)
    except re2.error as error:
        reason = error.args[0] if error.args else error
        shown = reason.decode(errors="replace") if isinstance(reason, bytes) else reason
        raise _bad_pattern(f"{shown} (RE2 syntax: no look-around, no back-references)") from error
    if automaton.programsize > SEARCH_PROGRAM_STEPS_MAX:
        raise _bad_pattern("it is too large when compiled: use smaller repetitions")
    is_bound_to_text = query.is_regex and (b"\\A" in encoded or b"\\z" in encoded)

    def locate(text: bytes, start: int, end: int) -> int:
        match = automaton.search(text, start, end)
        return -1 if match is None else match.start()

    def locate_in_each_line(text: bytes, start: int, end: int) -> int:
        while start <= end:
            line_end = text.find(b"\n", start, end)
            line_end = end if line_end < 0 else line_end
            match = automaton.search(text[start:line_end])
            if match is not None:
                return start + int(match.start())
            start = line_end + 1
        return -1

    return locate_in_each_line if is_bound_to_text else locate


def _text_of(root_fd: int, path: bytes, page: _Page) -> bytes | None:
    """Return the content of a text file, line ends as LF; None for one that is binary, gone, or can't be searched."""
    try:
        descriptor, status = open_regular(root_fd, path.decode("utf-8", "surrogateescape"))
        try:
            if status.st_size > SEARCH_FILE_BYTES_MAX:
                page.is_incomplete = True
                return None
            content = os.pread(descriptor, status.st_size, 0)
        finally:
            os.close(descriptor)
    except OSError as error:
        page.is_incomplete = page.is_incomplete or not is_gone(error)
        return None
    if b"\0" in content[:_BINARY_PROBE_BYTES]:
        return None
    return content.replace(b"\r\n", b"\n") if b"\r\n" in content else content


def _matching_lines(
    text: bytes, locate: _Locate, page: _Page, *, line_bytes_max: int, is_over: Callable[[], bool]
) -> Iterator[tuple[int, int, int]]:
    """Give each matching line as (offset of its start, offset of its first match, number)."""
    line, counted = 1, 0
    for block_start, block_end in _blocks(text):
        if block_start > 0 and is_over():
            page.is_incomplete = True
            return
        start, stop = block_start, block_end
        if stop - start > line_bytes_max:
            stop, page.is_incomplete = start + line_bytes_max, True
        while start <= stop:
            at = locate(text, start, stop)
            if at < 0:
                break
            line += text.count(b"\n", counted, at)
            counted = at
            yield text.rfind(b"\n", 0, at) + 1, at, line
            newline = text.find(b"\n", at, stop)
            if newline < 0:
                break
            start = newline + 1


def _blocks(text: bytes) -> Iterator[tuple[int, int]]:
    """Give consecutive ranges of whole lines, without the last line's end; a longer line is a range by itself."""
    start = 0
    while start < len(text):
        end = len(text)
        if end - start > _BLOCK_BYTES:
            newline = text.rfind(b"\n", start, start + _BLOCK_BYTES)
            if newline < 0:
                newline = text.find(b"\n", start)
            end = newline if newline >= 0 else end
        else:
            end -= text.endswith(b"\n")
        yield start, end
        start = end + 1


def _match_of(text: bytes, start: int, at: int, *, path: str, line: int, context: int) -> SearchMatch:
    end = text.find(b"\n", at)
    end = len(text) if end < 0 else end
    column = len(text[start:at].decode(errors="replace")) + 1
    shown = text[start:end].decode(errors="replace")
    first = 0 if column <= SEARCH_LINE_CHARACTERS_MAX - _LEAD_CHARACTERS else column - 1 - _LEAD_CHARACTERS
    return SearchMatch(
        path, line, column, shown[first : first + SEARCH_LINE_CHARACTERS_MAX],
        before=_lines_before(text, start, context), after=_lines_after(text, end, context),
    )


def _lines_before(text: bytes, start: int, count: int) -> tuple[str, ...]:
    lines: list[str] = []
    while len(lines) < count and start > 0:
        end = start - 1
        start = text.rfind(b"\n", 0, end) + 1
        lines.append(_shortened(text, start, end))
    return tuple(reversed(lines))


def _lines_after(text: bytes, end: int, count: int) -> tuple[str, ...]:
    lines: list[str] = []
    while len(lines) < count and end + 1 < len(text):
        start = end + 1
        end = text.find(b"\n", start)
        end = len(text) if end < 0 else end
        lines.append(_shortened(text, start, end))
    return tuple(lines)


def _shortened(text: bytes, start: int, end: int) -> str:
    # A character has at most four bytes, so more needn't be decoded.
    piece = text[start : min(end, start + 4 * SEARCH_LINE_CHARACTERS_MAX)]
    return piece.decode(errors="replace")[:SEARCH_LINE_CHARACTERS_MAX]


def _bad_pattern(reason: str) -> CodespaceError:
    return CodespaceError(
        ErrorCode.INVALID_ARGUMENT, f"The pattern can't be used: {reason}.", detail={"field": "pattern"}
    )
