"""From the text as sent to the lines between the Begin and End markers: limits, wrappers, line ends.

Source: V4A reference, section 2; decision 4 for fences and the command wrapper; decision 7 for the limit.
"""

import re
from dataclasses import dataclass

from codespace_es.v4a.refusal import refusal
from codespace_es.v4a.white_space import WHITE_SPACE, trim
from codespace_es.vocabulary.errors import CodespaceError, ErrorCode
from codespace_es.vocabulary.limits import MIB, PATCH_BYTES_MAX

BEGIN = "*** Begin Patch"
END = "*** End Patch"

_HEREDOC_STARTS = ("<<EOF", "<<'EOF'", '<<"EOF"')
_FENCE = re.compile(r"(`{3,}|~{3,})[^`]*")
_COMMAND = re.compile(r"apply_?patch[ \t]+<<-?[ \t]*(['\"]?)(\w+)\1")
_WRAPPERS_MAX = 4
_HEREDOC_LINES_MIN = 4


@dataclass(frozen=True, slots=True)
class Envelope:
    """The lines of a patch from its Begin marker to its last line, both included."""

    lines: list[str]
    first_line_number: int
    """1-based line of the Begin marker in the text as sent."""


def open_envelope(text: str) -> Envelope:
    """Return the patch in `text`, without what is wrapped around it.

    Lines end at LF alone; up to two CR before it go with it.

    Raises:
        CodespaceError: INVALID_PATCH for a text that is too large, isn't encodable, or lacks a marker.
    """
    _check_size(text)
    lines_above = text[: len(text) - len(text.lstrip(WHITE_SPACE))].count("\n")
    lines = trim(text).split("\n")
    if "\r" in text:
        lines = [_without_carriage_returns(line) for line in lines]
    envelope = Envelope(lines, lines_above + 1)
    for _ in range(_WRAPPERS_MAX):
        if _is_whole(envelope.lines):
            return envelope
        inner = _peel(envelope)
        if inner is None:
            break
        envelope = inner
    raise _missing_marker(envelope)


def _check_size(text: str) -> None:
    if len(text) > PATCH_BYTES_MAX:
        raise _too_large()
    try:
        size_bytes = len(text.encode("utf-8"))
    except UnicodeEncodeError as error:
        raise refusal(
            ErrorCode.INVALID_PATCH, f"The patch has a lone surrogate at character {error.start}: it is not text.",
            patch_line=text.count("\n", 0, error.start) + 1,
        ) from None
    if size_bytes > PATCH_BYTES_MAX:
        raise _too_large()


def _too_large() -> CodespaceError:
    limit = f"{PATCH_BYTES_MAX // MIB} MiB"
    return refusal(ErrorCode.INVALID_PATCH, f"The patch is larger than {limit}.", limit_bytes=PATCH_BYTES_MAX)


def _without_carriage_returns(line: str) -> str:
    if not line.endswith("\r"):
        return line
    return line[:-2] if line.endswith("\r\r") else line[:-1]


def _is_whole(lines: list[str]) -> bool:
    return len(lines) > 1 and trim(lines[0]) == BEGIN and trim(lines[-1]) == END


def _peel(envelope: Envelope) -> Envelope | None:
    """Return what one wrapper holds, or None if there is no wrapper that is closed."""
    lines = envelope.lines
    if len(lines) < _HEREDOC_LINES_MIN:
        return None
    first, last = lines[0], lines[-1]
    if first in _HEREDOC_STARTS:
        # The format's own wrapper admits nothing between itself and the markers.
        return Envelope(lines[1:-1], envelope.first_line_number + 1) if last.endswith("EOF") else None
    first, last = trim(first), trim(last)
    if command := _COMMAND.fullmatch(first):
        is_closed = last == command.group(2)
    elif fence := _FENCE.fullmatch(first):
        is_closed = len(last) >= len(fence.group(1)) and set(last) == {first[0]}
    else:
        return None
    return _without_blank_edges(lines[1:-1], envelope.first_line_number + 1) if is_closed else None


def _without_blank_edges(lines: list[str], first_line_number: int) -> Envelope | None:
    filled = [index for index, line in enumerate(lines) if trim(line)]
    if not filled:
        return None
    return Envelope(lines[filled[0] : filled[-1] + 1], first_line_number + filled[0])


def _missing_marker(envelope: Envelope) -> CodespaceError:
    lines = envelope.lines
    if trim(lines[0]) != BEGIN:
        message, index = f"The first line of the patch must be '{BEGIN}'.", 0
    else:
        message, index = f"The last line of the patch must be '{END}'.", len(lines) - 1
    return refusal(
        ErrorCode.INVALID_PATCH, message, patch_line=envelope.first_line_number + index, found=lines[index],
    )
