"""What finding and rewriting share: files put to a crew as questions, and an account of what was seen."""

import base64
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field

from adapters.structural.crew import Crew
from adapters.structural.scope import FilesInScope, files_in_scope, wanted_language
from adapters.wire import Message
from codespace_es.ports.files import WorkspaceFiles
from codespace_es.ports.structural_search import Coverage, PatternReading, SkippedFile, StructuralScope
from codespace_es.vocabulary import limits
from codespace_es.vocabulary.errors import CodespaceError, ErrorCode
from codespace_es.vocabulary.file_change import FileImage

_QUOTED_CHARACTERS_MAX = 80


@dataclass(slots=True)
class Inquiry:
    """One job: its files, and what has been seen of them."""

    crew: Crew
    files: WorkspaceFiles
    scope: StructuralScope
    patterns: Sequence[str]
    in_scope: FilesInScope
    readings: list[PatternReading] = field(default_factory=list)
    skipped: list[SkippedFile] = field(default_factory=list)
    files_searched: int = 0
    is_time_up: bool = False
    _usable: list[tuple[str, str]] = field(default_factory=list)

    def check(self) -> None:
        """Find out how the patterns read in each language in scope, and leave out files of those where they can't.

        Raises as `Crew.answers`, and INVALID_ARGUMENT if they can't be used in any.
        """
        named = wanted_language(self.scope.language)
        languages = sorted({language for _, language in self.in_scope.files} | ({named} if named else set()))
        checks: list[tuple[Message, int]] = [({"kind": "check", "language": each}, 0) for each in languages]
        faulty: dict[str, Message] = {}
        for language, answer in zip(languages, self.crew.answers(checks), strict=True):
            self._take_reading(language, answer)
            if answer["kind"] == "lost" or "fault" in answer:
                faulty[language] = answer
        if faulty and len(faulty) == len(languages):
            raise self._unusable(next(iter(faulty.values())))
        self._usable = [each for each in self.in_scope.files if each[1] not in faulty]

    def _take_reading(self, language: str, answer: Message) -> None:
        if answer["kind"] == "lost" or "fault" in answer:
            self.readings.append(PatternReading(language, self.patterns[0], fault=_fault_of(answer)))
            return
        self.readings.extend(
            PatternReading(language, pattern, reading["kind"], reading["is_broken"])
            for pattern, reading in zip(self.patterns, answer["readings"], strict=True)
        )

    def _unusable(self, answer: Message) -> CodespaceError:
        fault = _fault_of(answer)
        if self.scope.selector is not None and (fault.startswith("kind ") or "selector" in fault):
            return unusable("selector", self.scope.selector, fault)
        return unusable("pat", self.patterns[answer.get("pattern", 0)], fault)

    def answers(self, start: int = 0) -> Generator[tuple[int, FileImage, Message], None, None]:
        """Yield the place among the files, the content and what was found of each that could be read, from `start` on.

        Raises as `Crew.answers`.
        """
        asked: deque[tuple[int, FileImage]] = deque()

        def questions() -> Iterator[tuple[Message, int]]:
            for index, (path, language) in enumerate(self._usable[start:], start):
                image = self._image(path)
                if image is not None:
                    asked.append((index, image))
                    yield _question(language, image)

        with closing(self.crew.answers(questions())) as answers:
            for answer in answers:
                index, image = asked.popleft()
                if answer["kind"] == "matched":
                    self.files_searched += 1
                    yield index, image, answer
                else:
                    self.skipped.append(SkippedFile(self.path(index), _fault_of(answer)))

    def ask_again(self, index: int, image: FileImage, **more: int) -> Message:
        """Return what one file says to a narrower question. Raises as `Crew.answers`."""
        message, size = _question(self._usable[index][1], image)
        (answer,) = self.crew.answers([({**message, **more}, size)])
        return answer

    def path(self, index: int) -> str:
        """Return the path of a file by its place."""
        return self._usable[index][0]

    def _image(self, path: str) -> FileImage | None:
        try:
            image = self.files.read_image(path, bytes_max=limits.STRUCTURAL_FILE_BYTES_MAX)
        except CodespaceError as error:
            is_large = error.code is ErrorCode.INVALID_PATCH
            reason = f"it has more than {limits.STRUCTURAL_FILE_BYTES_MAX} bytes" if is_large else error.message
            self.skipped.append(SkippedFile(path, reason))
            return None
        if image is None:
            self.skipped.append(SkippedFile(path, "it is gone, or its name isn't UTF-8"))
        return image

    def coverage(self) -> Coverage:
        """Return the account of what was seen."""
        return Coverage(
            files_searched=self.files_searched,
            ignored_count=self.in_scope.ignored_count,
            unknown_count=self.in_scope.unknown_count,
            is_incomplete=self.in_scope.is_incomplete or self.is_time_up,
            skipped=tuple(sorted(self.skipped, key=lambda each: each.path.encode())),
            readings=tuple(self.readings),
        )


def open_inquiry(
    crew: Crew, files: WorkspaceFiles, scope: StructuralScope, patterns: Sequence[str],
    *, replacements: Sequence[str] | None, keep: int, is_left: Callable[[], bool],
) -> Inquiry:
    """Begin a job, whose files are listed; next comes `check`. Raises the port's errors."""
    crew.begin(
        {
            "kind": "job",
            "patterns": list(patterns),
            "replacements": None if replacements is None else list(replacements),
            "selector": scope.selector,
            "keep": keep,
            "text_characters_max": limits.STRUCTURAL_TEXT_CHARACTERS_MAX,
        },
        is_left=is_left,
    )
    return Inquiry(crew, files, scope, patterns, files_in_scope(files, scope))


def unusable(argument: str, text: str, fault: str) -> CodespaceError:
    """Return the refusal of a pattern, a replacement or a selector."""
    shown = text if len(text) <= _QUOTED_CHARACTERS_MAX else text[:_QUOTED_CHARACTERS_MAX] + "…"
    names = {"pat": "The pattern", "out": "The replacement", "selector": "The selector"}
    return CodespaceError(
        ErrorCode.INVALID_ARGUMENT, f"{names[argument]} {shown!r} can't be used: {fault}.", detail={"field": argument}
    )


def _question(language: str, image: FileImage) -> tuple[Message, int]:
    content = base64.b64encode(image.content).decode("ascii")
    return {"kind": "file", "language": language, "content": content}, len(content)


def _fault_of(answer: Message) -> str:
    """Return why an answer isn't one, without a full stop."""
    if answer["kind"] != "lost":
        return str(answer.get("fault") or answer["reason"])
    if answer["is_over_time"]:
        return f"it took more than {limits.STRUCTURAL_FILE_SECONDS_MAX} s of processor time"
    return "the parser can't cope with it"
