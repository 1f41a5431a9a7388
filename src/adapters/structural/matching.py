"""What the engine says of a pattern and of a file. Runs in a worker: it holds the interpreter while it parses.

A file whose text lacks a word that every match must have isn't parsed at all. A byte-order mark is kept from the
engine, for which it is an error in most languages.
Source: ast-grep-py 0.51, measured: ranges are in code points, faults are a RuntimeError with a stack trace in its text.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from ast_grep_py import SgRoot

from adapters.structural.patterns import METAVARIABLE, names_in
from adapters.structural.rewriting import Captured, leading_white_space

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from ast_grep_py import SgNode

_MARK = "zqv"
"""Begins the names that stand for metavariables when the pattern is looked at as plain code."""
_CAUSES = re.compile(r"^\s*\d+: (.*?)(?=^\s*\d+: |\Z)", re.MULTILINE | re.DOTALL)
"""The numbered lines of the engine's report."""
_STRINGS = re.compile(r"string|heredoc|nowdoc|template_literal|raw_text")
"""Kinds of nodes whose inner lines aren't ours to indent."""


@dataclass(frozen=True)
class Compiled:
    """A pattern in one language."""

    rule: Mapping[str, Any]
    one: frozenset[str]
    many: frozenset[str]
    kind: str
    is_broken: bool
    word: bytes | None
    """Bytes that every match has; None if there are none."""


class PatternFaultError(Exception):
    """The pattern can't be used in this language: why, in one sentence without its full stop."""


def compiled(pattern: str, language: str, selector: str | None) -> Compiled:
    """Return `pattern` as the engine reads it. Raises PatternFaultError."""
    rule: dict[str, Any] = {"pattern": pattern if selector is None else {"context": pattern, "selector": selector}}
    try:
        SgRoot("", language).root().find(**rule)
    except RuntimeError as error:
        raise PatternFaultError(_reason(str(error))) from None
    names = names_in(pattern)
    root = SgRoot(METAVARIABLE.sub(lambda match: _MARK + (match["many"] or match["one"] or ""), pattern), language)
    node = root.root().find(kind=selector) if selector is not None else _single(root.root())
    is_broken = root.root().find(kind="ERROR") is not None
    return Compiled(
        rule=rule,
        one=names.one,
        many=names.many,
        kind=selector or (node.kind() if node is not None else ""),
        is_broken=is_broken,
        word=None if is_broken or node is None else _rarest_word(node),
    )


def _reason(report: str) -> str:
    """Return the innermost cause of the engine's report, without its stack trace.

    It shows patterns with another sign than `$`, a different one in each language, so they are left out.
    """
    causes = _CAUSES.findall(report.partition("Stack backtrace")[0])
    reason = " ".join((causes[-1] if causes else report.partition("\n")[0]).split()).rstrip(".")
    if reason.startswith("Multiple AST nodes are detected"):
        return "it is several nodes: one pattern is one node; give each its own, or wrap them and name a selector"
    if reason.startswith("Standalone multi meta variable"):
        return "$$$NAME can't be all of it: use $NAME, or put it into a larger pattern"
    if reason.startswith("Fails to create Contextual pattern"):
        return "no node of the selector's kind is in the pattern"
    if reason.startswith("No AST root is detected"):
        return "it holds no code"
    return reason[:1].lower() + reason[1:]


def _single(node: SgNode) -> SgNode:
    """Return the node that a pattern is: below roots with one child only, a missing end of statement not counted."""
    while True:
        children = node.children()
        if len(children) != 1 and not (len(children) == 2 and not children[1].text()):
            return node
        node = children[0]


def _rarest_word(node: SgNode) -> bytes | None:
    """Return the longest text of a named leaf of `node`: the engine compares these letter by letter."""
    words = [text for text in _named_leaves(node) if text.isascii() and _MARK not in text and "\n" not in text]
    longest = max(words, key=len, default="")
    return longest.encode() or None


def _named_leaves(node: SgNode) -> Iterator[str]:
    children = node.children()
    if not children and node.is_named() and "comment" not in node.kind():
        yield node.text()
    for child in children:
        yield from _named_leaves(child)


@dataclass(frozen=True)
class Match:
    """One match in a file's text."""

    node: SgNode
    start: int
    end: int


class ParsedFile:
    """The text of one file and its tree."""

    def __init__(self, text: str, language: str) -> None:
        self.text = text
        self._root = SgRoot(text, language)

    def matches(self, pattern: Compiled) -> list[Match]:
        """Return the nodes that `pattern` finds, in order of place, outer ones before those within them."""
        found = []
        for node in self._root.root().find_all(**pattern.rule):
            span = node.range()
            found.append(Match(node, span.start.index, span.end.index))
        return found

    def captures(self, match: Match, pattern: Compiled) -> dict[str, Captured]:
        """Return what the metavariables of `pattern` stand for: of many nodes, the text from the first to the last."""
        found = {}
        for name in pattern.one:
            node = match.node.get_match(name)
            if node is not None:
                found[name] = self._captured([node])
        for name in pattern.many:
            nodes = match.node.get_multiple_matches(name)
            if nodes:
                found[name] = self._captured(nodes)
        return found

    def _captured(self, nodes: list[SgNode]) -> Captured:
        start, end = nodes[0].range().start.index, nodes[-1].range().end.index
        text = self.text[start:end]
        fixed = {line for node in nodes for line in _lines_in_strings(node)} if "\n" in text else set()
        return Captured(text, leading_white_space(self.text, start), frozenset(line - start for line in fixed))

    def broken_places(self) -> list[int]:
        """Return the 0-based line of each place that isn't whole code: what the parser couldn't read, or missed."""
        # A token that the parser had to add has no text.
        found = self._root.root().find_all(any=[{"kind": "ERROR"}, {"regex": "^$"}])
        return sorted(node.range().start.line for node in found if node.parent() is not None or node.text())


def _lines_in_strings(node: SgNode) -> Iterator[int]:
    """Yield the offset of each line of the file that begins within a string below `node`."""
    span = node.range()
    if span.start.line == span.end.line:
        return
    if _STRINGS.search(node.kind()):
        position = span.start.index
        for line in node.text().split("\n")[:-1]:
            position += len(line) + 1
            yield position
        return
    for child in node.children():
        yield from _lines_in_strings(child)
