"""Contents of one regular file: a window with the version of the whole, by bytes or by lines, and images for patches.

Content and version always come from the same pass over the file, so they agree whatever happens meanwhile; a file that
changed during the pass is read again. Memory is bounded by the window: a large file is streamed.
"""

import codecs
import hashlib
import os
import stat
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from adapters.beneath import path_error, shown_name
from adapters.files.opening import missing_file, open_regular
from codespace_es.ports.files import ReadWindow
from codespace_es.vocabulary.errors import CodespaceError, ErrorCode
from codespace_es.vocabulary.event import ABSENT, Version
from codespace_es.vocabulary.file_change import FileImage
from codespace_es.vocabulary.limits import MIB

STREAM_BYTES = MIB
"""Files up to this size are read in one call, larger ones in pieces of it."""
_ATTEMPTS_MAX = 5

_Read = TypeVar("_Read")
_Once = Callable[[int, os.stat_result], _Read | None]
"""Reads an open file once; None if what was read is not what the status announced."""


@dataclass(frozen=True, slots=True)
class _Pass:
    """What one pass over a file gave: facts about the whole, and the raw bytes of the window."""

    version: Version
    size_bytes: int
    line_count: int
    window: bytes


def read_window(root_fd: int, path: str, *, offset: int, limit: int) -> ReadWindow:
    """Return at most `limit` bytes from `offset`. Raises the codes of the port."""
    seen = _read_steadily(root_fd, path, lambda fd, status: _pass_over(fd, status, offset, limit))
    return _window_of(seen, offset)


def read_lines(root_fd: int, path: str, *, line_start: int, line_end: int | None, limit: int) -> ReadWindow:
    """Return whole lines as far as `limit` bytes allow; of a first line that is longer, its beginning.

    `line_start` and `line_end` of the answer are None when no line was in the range.

    Raises:
        CodespaceError: INVALID_ARGUMENT for line 0 or an end before the start, and the codes of the port.
    """
    if line_start == 0 or (line_end is not None and line_end < 1):
        field = "line_start" if line_start == 0 else "line_end"
        raise _bad_range(field, "lines are numbered from 1")
    if line_end is not None and line_end < line_start:
        raise _bad_range("line_end", f"{line_end} lies before line_start {line_start}")

    def once(descriptor: int, status: os.stat_result) -> tuple[_Pass, int, int] | None:
        first, offset = _locate_line(descriptor, line_start)
        seen = _pass_over(descriptor, status, offset, limit)
        return None if seen is None else (seen, first, offset)

    seen, first, offset = _read_steadily(root_fd, path, once)
    kept, line_count = _whole_lines(seen, offset, None if line_end is None else line_end - first + 1)
    window = _window_of(_Pass(seen.version, seen.size_bytes, seen.line_count, kept), offset)
    if line_count == 0:
        return window
    return ReadWindow(
        window.content, window.version, window.offset, window.byte_count, window.size_bytes, window.line_count,
        window.content_lossy, line_start=first, line_end=first + line_count - 1,
    )


def version_of(root_fd: int, path: str) -> Version:
    """Return the version of `path`, `absent` if there is none. Raises the codes of the port."""
    try:
        return _read_steadily(root_fd, path, lambda fd, status: _pass_over(fd, status, 0, 0)).version
    except CodespaceError as error:
        if error.code is ErrorCode.FILE_NOT_FOUND:
            return ABSENT
        raise


def read_image(root_fd: int, path: str, *, bytes_max: int) -> FileImage | None:
    """Return all of `path` with mode and links, or None if it is absent. Raises the codes of the port."""

    def once(descriptor: int, status: os.stat_result) -> FileImage | None:
        if status.st_size > bytes_max:
            raise CodespaceError(
                ErrorCode.INVALID_PATCH, f"{path!r} has {status.st_size} bytes; at most {bytes_max} can be patched.",
                detail={"path": path, "size_bytes": status.st_size, "bytes_max": bytes_max},
            )
        content = _read_all(descriptor, status.st_size)
        if len(content) != status.st_size:
            return None
        return FileImage(content, stat.S_IMODE(status.st_mode), status.st_nlink)

    try:
        return _read_steadily(root_fd, path, once)
    except CodespaceError as error:
        if error.code is ErrorCode.FILE_NOT_FOUND:
            return None
        raise


def _read_steadily(root_fd: int, path: str, once: "_Once[_Read]") -> _Read:
    """Return what `once` read from a file that stood still meanwhile, opening it anew for each attempt."""
    is_plain = True
    for _ in range(_ATTEMPTS_MAX):
        try:
            descriptor, before = open_regular(root_fd, path)
            try:
                read = once(descriptor, before)
                after = os.fstat(descriptor)
            finally:
                os.close(descriptor)
        except FileNotFoundError:
            raise missing_file(root_fd, path) from None
        except OSError as error:
            raise path_error(error, path) from error
        is_still = before.st_mtime_ns == after.st_mtime_ns and before.st_size == after.st_size
        if read is not None and is_still:
            return read
        # Another length than a file that stood still announces: /proc and its like, made up while being read.
        is_plain = not is_still
    shown = shown_name(path)
    if not is_plain:
        raise CodespaceError(
            ErrorCode.SPECIAL_FILE_REJECTED, f"{shown!r} has no fixed content.", detail={"path": shown}
        )
    raise CodespaceError(
        ErrorCode.FILE_OPERATION_FAILED, f"{shown!r} changed each of {_ATTEMPTS_MAX} times while it was read.",
        detail={"path": shown},
    )


def _pass_over(descriptor: int, status: os.stat_result, offset: int, limit: int) -> _Pass | None:
    """Return what one pass gave, or None if the file has another length than `status` says."""
    size = status.st_size
    if size <= STREAM_BYTES:
        content = _read_all(descriptor, size)
        if len(content) != size:
            return None
        digest = hashlib.sha256(content).hexdigest()
        return _Pass("sha256:" + digest, size, _line_count(content), content[offset : offset + limit])
    return _stream(descriptor, size, offset, limit)


def _stream(descriptor: int, size: int, offset: int, limit: int) -> _Pass | None:
    hasher = hashlib.sha256()
    window: list[bytes] = []
    position = newlines = 0
    piece = b""
    buffer = bytearray(STREAM_BYTES)
    view = memoryview(buffer)
    os.lseek(descriptor, 0, os.SEEK_SET)
    while length := os.readv(descriptor, [buffer]):
        hasher.update(view[:length])
        newlines += buffer.count(b"\n", 0, length)
        start, end = max(offset - position, 0), min(offset + limit - position, length)
        if start < end:
            window.append(bytes(view[start:end]))
        piece = bytes(view[length - 1 : length])
        position += length
    if position != size:
        return None
    lines = newlines if piece == b"\n" else newlines + 1
    return _Pass("sha256:" + hasher.hexdigest(), size, lines, b"".join(window))


def _read_all(descriptor: int, size: int) -> bytes:
    """Return the content from the start; longer than `size` by what was read too much, if there is more."""
    content = os.pread(descriptor, size + 1, 0)
    if len(content) == size or len(content) > size:
        return content
    pieces = [content]
    position = len(content)
    while piece := os.pread(descriptor, size + 1 - position, position):
        pieces.append(piece)
        position += len(piece)
    return b"".join(pieces)


def _line_count(content: bytes) -> int:
    newlines = content.count(b"\n")
    return newlines if not content or content[-1] == 0x0A else newlines + 1


def _locate_line(descriptor: int, line_start: int) -> tuple[int, int]:
    """Return number and byte offset of the line `line_start` stands for; past the end: the size of the file."""
    ends: list[int] = []
    position, last = 0, b"\n"
    while piece := os.pread(descriptor, STREAM_BYTES, position):
        ends.append(piece.count(b"\n"))
        position += len(piece)
        last = piece[-1:]
    line_count = sum(ends) + (last != b"\n")
    first = max(line_count + line_start + 1, 1) if line_start < 0 else line_start
    to_pass = first - 1
    if to_pass >= line_count:
        return first, position
    for index, count in enumerate(ends):
        if to_pass == 0:
            return first, index * STREAM_BYTES
        if to_pass <= count:
            return first, index * STREAM_BYTES + _after_newline(descriptor, index, to_pass)
        to_pass -= count
    return first, position


def _after_newline(descriptor: int, index: int, number: int) -> int:
    """Return the offset behind the `number`th newline of piece `index`, within that piece."""
    piece = os.pread(descriptor, STREAM_BYTES, index * STREAM_BYTES)
    end = 0
    for _ in range(number):
        end = piece.find(b"\n", end) + 1
    return end


def _whole_lines(seen: _Pass, offset: int, lines_max: int | None) -> tuple[bytes, int]:
    """Return the first `lines_max` lines of the window and their number; a cut line only if it is the first."""
    window = seen.window
    is_rest_complete = offset + len(window) >= seen.size_bytes
    end = count = 0
    if lines_max is None or window.count(b"\n") <= lines_max:
        end, count = window.rfind(b"\n") + 1, window.count(b"\n")
    while lines_max is not None and count < lines_max:
        newline = window.find(b"\n", end)
        if newline < 0:
            break
        end, count = newline + 1, count + 1
    if end < len(window) and (lines_max is None or count < lines_max) and (is_rest_complete or count == 0):
        return window, count + 1
    return window[:end], count


def _window_of(seen: _Pass, offset: int) -> ReadWindow:
    raw = seen.window
    is_more = offset + len(raw) < seen.size_bytes
    try:
        content, is_lossy = raw.decode(), False
    except UnicodeDecodeError:
        raw, content, is_lossy = _decode_to_boundary(raw, is_more=is_more)
    return ReadWindow(content, seen.version, offset, len(raw), seen.size_bytes, seen.line_count, is_lossy)


def _decode_to_boundary(raw: bytes, *, is_more: bool) -> tuple[bytes, str, bool]:
    """Return `raw` without a character that its end cuts (unless nothing else is there), its text, is it lossy."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    decoder.decode(raw)
    cut = len(decoder.getstate()[0])
    if is_more and 0 < cut < len(raw):
        raw = raw[:-cut]
    try:
        return raw, raw.decode(), False
    except UnicodeDecodeError:
        return raw, raw.decode(errors="replace"), True


def _bad_range(field: str, reason: str) -> CodespaceError:
    return CodespaceError(ErrorCode.INVALID_ARGUMENT, f"{field} can't be used: {reason}.", detail={"field": field})
