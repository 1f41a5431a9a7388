"""How a terminal treats its input right now: the program may have changed it at any time."""

import termios

from adapters.runner.input_queue import CanonicalMode

_CONTROL = bytes(number for number in (*range(32), 127) if number != ord("\t"))
"""Whatever else these do, they may not end up in the line: flow control, ignored carriage returns."""
_EDITING = (termios.VERASE, termios.VKILL, termios.VWERASE, termios.VLNEXT, termios.VREPRINT)
_NONE = 0
"""_POSIX_VDISABLE: the character has no function."""
_DEFAULT_END_OF_FILE = 4


def canonical_mode(descriptor: int) -> CanonicalMode | None:
    """Return what acts on lines in the terminal at `descriptor`; None in raw mode, or once it is hung up."""
    try:
        input_flags, _, _, local_flags, _, _, characters = termios.tcgetattr(descriptor)
    except termios.error:
        return None
    if not local_flags & termios.ICANON:
        return None
    line_ends = b"\n" + _named(characters, termios.VEOL, termios.VEOL2)
    if input_flags & termios.ICRNL and not input_flags & termios.IGNCR:
        line_ends += b"\r"
    erasers = _CONTROL + _named(characters, *_EDITING)
    if local_flags & termios.ISIG:
        erasers += _named(characters, termios.VINTR, termios.VQUIT, termios.VSUSP)
    return CanonicalMode(end_of_file_character(descriptor), line_ends, erasers)


def end_of_file_character(descriptor: int) -> int:
    """Return the character that ends the input of the terminal at `descriptor`; ^D if it can't be asked."""
    try:
        characters = termios.tcgetattr(descriptor)[6]
    except termios.error:
        return _DEFAULT_END_OF_FILE
    return _named(characters, termios.VEOF)[0] if _named(characters, termios.VEOF) else _DEFAULT_END_OF_FILE


def _named(characters: list[bytes | int], *indexes: int) -> bytes:
    values = [characters[index] for index in indexes]
    numbers = [value[0] if isinstance(value, bytes) else value for value in values]
    return bytes(number for number in numbers if number != _NONE)
