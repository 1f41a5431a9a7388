r"""Which paths a glob names.

Grammar: `*` and `?` stay within a segment; `**` as a whole segment spans any number of them; `[abc]`, `[a-z]`,
`[!abc]`, `[[:alpha:]]` match one character; `{a,b}` and `{1..3}` are alternatives; `\` takes the next character
literally. A pattern without `/` names a file at any depth, one with `/` is anchored at the root, a trailing `/` means
everything below. Nothing is hidden: `*` matches a leading dot.

Patterns become RE2 automata, so no pattern takes more than linear time.
"""

from collections.abc import Callable
from functools import lru_cache

import bracex
import re2

from adapters.beneath import cut_name, shown_name
from adapters.files.character_classes import POSIX_CLASSES
from codespace_es.vocabulary.errors import CodespaceError, ErrorCode
from codespace_es.vocabulary.limits import GLOB_ALTERNATIVES_MAX, GLOB_BRACES_MAX, GLOB_BYTES_MAX

PathTest = Callable[[bytes], bool]
"""Takes a path as it is shown, in UTF-8."""

_EVERYTHING = frozenset({"", "*", "**", "**/*"})
_MAGIC = "*?[{\\"
_NOTHING = r"[^\x00-\x{10FFFF}]"


def literal_directory(glob: str | None) -> str:
    """Return the directory below which all files of `glob` lie, as far as its text alone tells; `` for anywhere."""
    pattern = _anchored(glob or "")
    if "/" not in pattern or pattern.startswith("./"):
        return ""
    end = min((pattern.index(character) for character in _MAGIC if character in pattern), default=len(pattern))
    return pattern[:end].rpartition("/")[0]


@lru_cache(maxsize=64)
def path_test(glob: str | None) -> PathTest | None:
    """Return what tells whether a path is named by `glob`; None if every path is.

    Raises:
        CodespaceError: INVALID_ARGUMENT with the reason, for a glob that can't be understood.
    """
    if glob is None or glob in _EVERYTHING:
        return None
    try:
        size_bytes = len(glob.encode())
    except UnicodeEncodeError:
        raise _bad_glob(glob, "it holds a lone surrogate") from None
    if size_bytes > GLOB_BYTES_MAX:
        raise _bad_glob(glob[:80] + "…", f"it is longer than {GLOB_BYTES_MAX} bytes")
    if glob.count("{") > GLOB_BRACES_MAX:  # they are read by recursion, and so are those that are never closed
        raise _bad_glob(glob, f"it opens more than {GLOB_BRACES_MAX} braces")
    try:
        alternatives = bracex.expand(glob, keep_escapes=True, limit=GLOB_ALTERNATIVES_MAX)
    except bracex.ExpansionLimitException:
        raise _bad_glob(glob, f"its braces give more than {GLOB_ALTERNATIVES_MAX} alternatives") from None
    suffix = _plain_suffix(alternatives)
    if suffix is not None:
        return lambda path: path.endswith(suffix)
    expression = "|".join(_Translation(glob, _anchored(alternative)).expression for alternative in alternatives)
    options = re2.Options()
    options.dot_nl = True
    options.log_errors = False
    try:
        automaton = re2.compile(f"(?:{expression})".encode(), options)
    except re2.error as error:
        raise _bad_glob(glob, f"it can't be compiled ({error})") from error
    return lambda path: automaton.fullmatch(path) is not None


def _plain_suffix(alternatives: list[str]) -> bytes | None:
    """Return the ending that is all `*.py` asks for: by far the most frequent form, and much cheaper as text."""
    if len(alternatives) != 1:
        return None
    ending = alternatives[0].removeprefix("**/")
    rest = ending[1:]
    if ending[:1] != "*" or not rest or "/" in rest or not rest.isascii() or any(each in rest for each in _MAGIC):
        return None
    return rest.encode()


def _anchored(pattern: str) -> str:
    """Return `pattern` in its plain form: `dir/` as `dir/**`, and `./` or `/` in front only where it is the anchor."""
    bare = pattern
    while bare.startswith(("./", "/")):
        bare = bare.removeprefix(".").removeprefix("/")
    if bare != pattern and "/" not in bare:
        return "./" + bare
    return bare + "**" if bare.endswith("/") else bare


class _Translation:
    """One pattern without braces, read from left to right."""

    def __init__(self, glob: str, pattern: str) -> None:
        self._glob = glob
        self._pattern = pattern
        self._at = 0
        self.expression = self._translate()

    def _translate(self) -> str:
        prefix = "" if "/" in self._pattern else "(?:.*/)?"
        if self._pattern.startswith("./"):
            self._at = 2
        pieces = [prefix]
        while self._at < len(self._pattern):
            pieces.append(self._next_piece())
        return "".join(pieces)

    def _next_piece(self) -> str:
        character = self._pattern[self._at]
        if character == "*":
            return self._stars()
        self._at += 1
        if character == "?":
            return "[^/]"
        if character == "[":
            return self._character_class()
        if character == "\\":
            if self._at == len(self._pattern):
                raise _bad_glob(self._glob, "a backslash at its end takes nothing literally")
            character = self._pattern[self._at]
            self._at += 1
        return str(re2.escape(character))

    def _stars(self) -> str:
        start = self._at
        while self._pattern[self._at : self._at + 1] == "*":
            self._at += 1
        is_whole_segment = (start == 0 or self._pattern[start - 1] == "/") and (
            self._pattern[self._at : self._at + 1] in {"", "/"}
        )
        if self._at - start == 1 or not is_whole_segment or "/" not in self._pattern:
            return "[^/]*"
        if self._at == len(self._pattern):
            return ".+"
        self._at += 1
        return "(?:.*/)?"

    def _character_class(self) -> str:
        is_negated = self._pattern[self._at : self._at + 1] in {"!", "^"}
        self._at += is_negated
        ranges: list[tuple[int, int]] = []
        while not ranges or self._pattern[self._at : self._at + 1] != "]":
            ranges += self._class_members()
        self._at += 1
        return _class_expression(ranges, is_negated=is_negated)

    def _class_members(self) -> list[tuple[int, int]]:
        if self._pattern.startswith("[:", self._at):
            end = self._pattern.find(":]", self._at)
            name = self._pattern[self._at + 2 : end] if end >= 0 else ""
            if name not in POSIX_CLASSES:
                raise _bad_glob(self._glob, f"[:{name}:] is no class of characters")
            self._at = end + 2
            return [(code, code) for code in sorted(POSIX_CLASSES[name])]
        low = high = self._class_character()
        following = self._pattern[self._at : self._at + 2]
        if following.startswith("-") and following not in {"-", "-]"}:
            self._at += 1
            high = self._class_character()
            if high < low:
                raise _bad_glob(self._glob, f"the range {chr(low)}-{chr(high)} is empty")
        return [(low, high)]

    def _class_character(self) -> int:
        if self._pattern[self._at : self._at + 1] == "\\":
            self._at += 1
        if self._at >= len(self._pattern):
            raise _bad_glob(self._glob, "its [ is never closed; write [[] for a literal one")
        self._at += 1
        return ord(self._pattern[self._at - 1])


def _class_expression(ranges: list[tuple[int, int]], *, is_negated: bool) -> str:
    """Return the class as RE2 writes it; it never takes the separator, not even by a range around it."""
    separator = ord("/")
    if is_negated:
        return "[^/" + "".join(f"\\x{{{low:x}}}-\\x{{{high:x}}}" for low, high in ranges) + "]"
    around = [(low, min(high, separator - 1)) for low, high in ranges]
    around += [(max(low, separator + 1), high) for low, high in ranges]
    members = "".join(f"\\x{{{low:x}}}-\\x{{{high:x}}}" for low, high in around if low <= high)
    return f"[{members}]" if members else _NOTHING


def _bad_glob(glob: str, reason: str) -> CodespaceError:
    shown = cut_name(shown_name(glob))
    return CodespaceError(
        ErrorCode.INVALID_ARGUMENT, f"The glob {shown!r} can't be understood: {reason}.", detail={"field": "glob"}
    )
