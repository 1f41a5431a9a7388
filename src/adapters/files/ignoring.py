"""What git's ignore files leave out: rules of one file, and the chain of files that counts at a directory.

The rules are git's own, byte for byte: the last matching rule of the innermost file that has one decides, `!` takes
back, and nothing below a directory that is left out is ever looked at. All rules of a file are one RE2 automaton, so
a thousand rules cost a path hardly more than one, and none can hang.
Source: gitignore(5), and git's `dir.c` and `wildmatch.c` for what that page leaves open.
"""

from dataclasses import dataclass

import re2

from adapters.files.character_classes import POSIX_CLASSES
from codespace_es.vocabulary.limits import MIB

_SPECIAL = b"*?[\\"
_RULES_IN_SET_MAX = 500
_SET_MEMORY_BYTES = 64 * MIB
_NEVER: None = None
_SLASH = 0x2F


@dataclass(frozen=True, slots=True)
class IgnoreRules:
    """The rules of one ignore file, for paths relative to the directory it stands in, in layers of rising strength."""

    layers: tuple["_Layer", ...]

    def verdict(self, path: bytes, *, is_directory: bool) -> bool | None:
        """Return whether `path` is left out (True) or taken back (False) here; None if no rule speaks of it."""
        for layer in reversed(self.layers):
            verdict = layer.verdict(path, is_directory=is_directory)
            if verdict is not None:
                return verdict
        return None


@dataclass(frozen=True, slots=True)
class IgnoreChain:
    """The ignore files that count in one directory: its own innermost, then those of the directories above."""

    depth: int
    """Bytes of a path, relative to the root, that lie above the directory of `rules`."""
    rules: IgnoreRules
    outer: "IgnoreChain | None" = None

    def is_ignored(self, path: bytes, *, is_directory: bool) -> bool:
        """Return whether `path`, relative to the root, is left out; its parents are taken not to be."""
        link: IgnoreChain | None = self
        while link is not None:
            verdict = link.rules.verdict(path[link.depth :], is_directory=is_directory)
            if verdict is not None:
                return verdict
            link = link.outer
        return False


def parse_rules(content: bytes) -> IgnoreRules | None:
    """Return the rules that the text of an ignore file states, None if it states none. Never raises."""
    rules = [rule for line in content.removeprefix(b"\xef\xbb\xbf").split(b"\n") if (rule := _parse_line(line))]
    pieces = [rules[start : start + _RULES_IN_SET_MAX] for start in range(0, len(rules), _RULES_IN_SET_MAX)]
    layers = tuple(layer for piece in pieces for layer in _layers(piece))
    return IgnoreRules(layers) if layers else None


@dataclass(frozen=True, slots=True)
class _Rule:
    expression: bytes
    is_taken_back: bool
    is_for_directories: bool


class _Layer:
    """Some consecutive rules as one automaton, which names all that match."""

    def __init__(self, rules: list[_Rule]) -> None:
        options = re2.Options()
        options.encoding = re2.Options.Encoding.LATIN1
        options.dot_nl = True
        options.log_errors = False
        options.max_mem = _SET_MEMORY_BYTES
        self._rules = rules
        self._automaton = re2.Set.FullMatchSet(options)
        for rule in rules:
            self._automaton.Add(rule.expression)
        self._automaton.Compile()

    def verdict(self, path: bytes, *, is_directory: bool) -> bool | None:
        matching = self._automaton.Match(path)
        if matching is None:
            return None
        for index in sorted(matching, reverse=True):
            rule = self._rules[index]
            if is_directory or not rule.is_for_directories:
                return not rule.is_taken_back
        return None


def _layers(rules: list[_Rule]) -> list[_Layer]:
    """Return `rules` as automata: one, or more where they are too large together. One that is too large alone goes."""
    if not rules:
        return []
    try:
        return [_Layer(rules)]
    except re2.error:
        middle = len(rules) // 2
        return _layers(rules[:middle]) + _layers(rules[middle:]) if middle else []


def _parse_line(line: bytes) -> _Rule | None:
    line = line.partition(b"\0")[0].removesuffix(b"\r")
    if not line or line.startswith(b"#"):
        return None
    line = _without_trailing_spaces(line)
    is_taken_back = line.startswith(b"!")
    pattern = line[1:] if is_taken_back else line
    is_for_directories = pattern.endswith(b"/")
    if is_for_directories:
        pattern = pattern[:-1]
    is_name = b"/" not in pattern
    if not is_name and pattern.startswith(b"/"):
        pattern = pattern[1:]
    expression = _translate(pattern, is_name=is_name)
    if not pattern or expression is _NEVER:
        return None
    return _Rule((b"(?:.*/)?" if is_name else b"") + expression, is_taken_back, is_for_directories)


def _without_trailing_spaces(line: bytes) -> bytes:
    """Return `line` without the spaces at its end, unless a backslash keeps them."""
    end = at = 0
    while at < len(line):
        if line[at] == 0x5C:
            at += 1
            end = at + 1
        elif line[at] != 0x20:
            end = at + 1
        at += 1
    return line[:end]


def _translate(pattern: bytes, *, is_name: bool) -> bytes | None:
    """Return the expression of `pattern`, None for one that never matches."""
    # git compares what stands before the first special character by itself, so a `**` there counts as a whole segment;
    # a pattern without a slash is asked of the name alone.
    special = next((at for at, byte in enumerate(pattern) if byte in _SPECIAL), len(pattern))
    literal_length = None if is_name else special
    pieces: list[bytes] = []
    at = 0
    while at < len(pattern):
        byte = pattern[at]
        at += 1
        if byte == 0x2A:
            piece, at = _stars(pattern, at - 1, literal_length)
            pieces.append(piece)
        elif byte == 0x3F:
            pieces.append(b"[^/]")
        elif byte == 0x5B:
            members, at = _class_members(pattern, at)
            if not members:
                return _NEVER
            pieces.append(b"[" + b"".join(b"\\x%02x" % member for member in sorted(members)) + b"]")
        elif byte == 0x5C:
            if at == len(pattern):
                return _NEVER
            pieces.append(b"\\x%02x" % pattern[at])
            at += 1
        else:
            pieces.append(b"\\x%02x" % byte)
    return b"".join(pieces)


def _stars(pattern: bytes, start: int, literal_length: int | None) -> tuple[bytes, int]:
    at = start
    while pattern[at : at + 1] == b"*":
        at += 1
    is_begun = literal_length is not None and (start == literal_length or pattern[start - 1] == _SLASH)
    is_ended = pattern[at : at + 1] in {b"", b"/"} or pattern[at : at + 2] == b"\\/"
    if at - start == 1 or not is_begun or not is_ended:
        return b"[^/]*", at
    if pattern[at : at + 1] == b"/":
        return b"(?:.*/)?", at + 1
    return b".*", at


def _class_members(pattern: bytes, at: int) -> tuple[set[int], int]:
    """Return the bytes that the class beginning at `at` takes, and where it ends; none for one that is malformed."""
    is_negated = pattern[at : at + 1] in {b"!", b"^"}
    at += is_negated
    members: set[int] = set()
    previous: int | None = None
    is_first = True
    while is_first or pattern[at : at + 1] != b"]":
        is_first = False
        if at >= len(pattern):
            return set(), at
        byte = pattern[at]
        if byte == 0x2D and previous is not None and pattern[at + 1 : at + 2] not in {b"", b"]"}:
            at += 2 if pattern[at + 1] == 0x5C else 1
            if at >= len(pattern):
                return set(), at
            members.update(range(previous, pattern[at] + 1))
            previous = None
        elif pattern[at : at + 2] == b"[:":
            named, at = _named_class(pattern, at)
            if named is None:
                return set(), at
            members |= named
            previous = 0x5B if named == {0x5B} else None
        else:
            if byte == 0x5C:
                at += 1
                if at >= len(pattern):
                    return set(), at
            members.add(pattern[at])
            previous = pattern[at]
        at += 1
    taken = (set(range(256)) - members) if is_negated else members
    return taken - {_SLASH}, at + 1


def _named_class(pattern: bytes, at: int) -> tuple[frozenset[int] | None, int]:
    """Return the bytes of `[:name:]` and the place of its last byte; a bare `[` where that isn't what stands there."""
    end = pattern.find(b"]", at + 2)
    if end < 0:
        return None, len(pattern)
    if end == at + 2 or pattern[end - 1] != 0x3A:
        return frozenset({0x5B}), at
    return POSIX_CLASSES.get(pattern[at + 2 : end - 1].decode("latin-1")), end
