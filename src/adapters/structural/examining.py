"""What a worker answers: how patterns are read in a language, and what they find in one file or make of it."""

from __future__ import annotations

import base64

from adapters.structural.matching import Compiled, Match, ParsedFile, PatternFaultError, compiled
from adapters.structural.rewriting import (
    OverlapError,
    Replacement,
    Slot,
    chosen,
    fill_template,
    leading_white_space,
    parse_template,
    spliced,
)
from adapters.wire import MESSAGE_BYTES_MAX, Message

_CONTENT_BYTES_MAX = MESSAGE_BYTES_MAX // 2
"""Of new text in one message, as base64 with room for the rest."""
_TOLD_CHARACTERS_MAX = MESSAGE_BYTES_MAX // 16
"""Of matches in one message; JSON may need six bytes for each."""
_CAPTURES_MAX = 20
"""Metavariables that are told of one match."""
_BINARY_PROBE_BYTES = 8 * 1024
_MARK = "\ufeff"


class Examiner:
    """Holds the job at hand."""

    def __init__(self) -> None:
        self._patterns: list[str] = []
        self._templates: list[list[str | Slot]] | None = None
        self._selector: str | None = None
        self._keep = 0
        self._text_characters_max = 0
        self._compiled: dict[str, list[Compiled]] = {}

    def answer(self, message: Message) -> Message | None:
        """Return the answer to a message, None to a `job`."""
        match message["kind"]:
            case "job":
                self._patterns = message["patterns"]
                replacements = message.get("replacements")
                self._templates = None if replacements is None else [parse_template(each) for each in replacements]
                self._selector = message.get("selector")
                self._keep = message["keep"]
                self._text_characters_max = message["text_characters_max"]
                self._compiled = {}
                return None
            case "check":
                return self._check(message["language"])
            case _:
                content = base64.b64decode(message["content"])
                return self._examine(content, message["language"], message.get("limit"), message.get("skip", 0))

    def _check(self, language: str) -> Message:
        """Compile the patterns in `language`; a language in which one can't be used has nothing compiled."""
        try:
            patterns = [compiled(pattern, language, self._selector) for pattern in self._patterns]
        except PatternFaultError as fault:
            return {"kind": "reading", "fault": str(fault)}
        except RecursionError:
            return {"kind": "reading", "fault": "it is nested too deeply"}
        self._compiled[language] = patterns
        readings = [{"kind": each.kind, "is_broken": each.is_broken} for each in patterns]
        return {"kind": "reading", "readings": readings}

    def _examine(self, content: bytes, language: str, limit: int | None, skip: int) -> Message:
        if b"\0" in content[:_BINARY_PROBE_BYTES]:
            return _skipped("it is binary")
        if language not in self._compiled:
            self._check(language)  # another worker was asked whether it can be
        patterns = [
            (index, pattern) for index, pattern in enumerate(self._compiled[language])
            if pattern.word is None or pattern.word in content
        ]
        if not patterns:
            return {"kind": "matched", "count": 0, "matches": []}
        try:
            whole = content.decode()
        except UnicodeDecodeError:
            return _skipped("it isn't UTF-8")
        file = ParsedFile(whole.removeprefix(_MARK), language)
        try:
            found = [(index, pattern, match) for index, pattern in patterns for match in file.matches(pattern)]
            found.sort(key=lambda each: (each[2].start, -each[2].end, each[0]))
            if self._templates is None:
                told = self._told(file, found[skip:])
                return {"kind": "matched", "count": len(found), "skipped": skip, "matches": told}
            return self._rewrite(file, found, language, limit, mark=whole[: len(whole) - len(file.text)])
        except RecursionError:
            return _skipped("it is nested too deeply")

    def _told(self, file: ParsedFile, found: list[tuple[int, Compiled, Match]]) -> list[Message]:
        """Return the first matches of `found`, as many as are wanted and go into a message."""
        told: list[Message] = []
        characters = 0
        for _, pattern, match in found[: self._keep]:
            span = match.node.range()
            most = self._text_characters_max
            captures = file.captures(match, pattern)
            texts = {name: captures[name].text[:most] for name in sorted(captures)[:_CAPTURES_MAX]}
            text = file.text[match.start : match.end][:most]
            told.append({
                "line": span.start.line + 1, "column": span.start.column + 1,
                "end_line": span.end.line + 1, "end_column": span.end.column + 1,
                "text": text, "captures": texts,
            })
            characters += len(text) + sum(map(len, texts.values()))
            if characters >= _TOLD_CHARACTERS_MAX:
                break
        return told

    def _rewrite(
        self, file: ParsedFile, found: list[tuple[int, Compiled, Match]], language: str, limit: int | None, *, mark: str
    ) -> Message:
        assert self._templates is not None, "asked for by the job"
        line_end = "\r\n" if file.text[: file.text.find("\n") + 1].endswith("\r\n") else "\n"
        replacements = []
        for index, pattern, match in found:
            new = fill_template(
                self._templates[index], file.captures(match, pattern),
                indent=leading_white_space(file.text, match.start), line_end=line_end,
            )
            if new != file.text[match.start : match.end]:
                replacements.append(Replacement(match.start, match.end, new))
        answer: Message = {"kind": "matched", "count": len(found), "changes": len(replacements)}
        try:
            kept = chosen(replacements, limit)
        except OverlapError as overlap:
            return {**answer, "overlap": [file.text.count("\n", 0, offset) + 1 for offset in overlap.args]}
        if not kept:
            return answer
        rewritten = spliced(file.text, kept)
        broken = ParsedFile(rewritten, language).broken_places()
        if broken and len(broken) > len(file.broken_places()):
            answer["broken_line"] = broken[0] + 1
        content = (mark + rewritten).encode()
        if len(content) > _CONTENT_BYTES_MAX:
            return _skipped(f"its new text has {len(content)} bytes")
        return {**answer, "kept": len(kept), "content": base64.b64encode(content).decode("ascii")}


def _skipped(reason: str) -> Message:
    return {"kind": "skipped", "reason": reason}
