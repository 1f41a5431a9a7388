"""A page of matches, in order of path and place, from what the files say one after another."""

from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, field

from adapters.structural.crew import Crew, TimeUpError
from adapters.structural.inquiry import Inquiry, open_inquiry
from adapters.wire import Message
from codespace_es.ports.files import WorkspaceFiles
from codespace_es.ports.structural_search import StructuralFindings, StructuralMatch, StructuralScope
from codespace_es.vocabulary import limits
from codespace_es.vocabulary.file_change import FileImage


@dataclass(slots=True)
class _Page:
    skip: int
    limit: int
    matches: list[StructuralMatch] = field(default_factory=list)
    characters: int = 0
    is_truncated: bool = False

    @property
    def room(self) -> int:
        return self.limit - len(self.matches) if self.characters < limits.STRUCTURAL_PAGE_CHARACTERS_MAX else 0

    def add(self, path: str, found: Sequence[Message]) -> None:
        for each in found:
            if not self.room:
                self.is_truncated = True
                return
            match = StructuralMatch(path=path, **each)
            self.characters += len(match.text) + sum(map(len, match.captures.values()))
            self.matches.append(match)


def find_matches(
    crew: Crew, files: WorkspaceFiles, scope: StructuralScope, pattern: str,
    *, limit: int, offset: int, is_left: Callable[[], bool],
) -> StructuralFindings:
    """Return the matches `offset` to `offset + limit`. Raises the port's errors, and as `Crew.answers`."""
    inquiry = open_inquiry(crew, files, scope, [pattern], replacements=None, keep=limit, is_left=is_left)
    page = _Page(offset, limit)
    try:
        inquiry.check()
        start = 0
        while (again := _read_on(inquiry, page, start)) is not None:
            index, image = again
            answer = inquiry.ask_again(index, image, skip=page.skip)
            page.skip = 0
            _take(page, inquiry.path(index), answer)
            start = index + 1
            if page.is_truncated:
                break
    except TimeUpError:
        inquiry.is_time_up = True
    return StructuralFindings(tuple(page.matches), page.is_truncated, inquiry.coverage())


def _read_on(inquiry: Inquiry, page: _Page, start: int) -> tuple[int, FileImage] | None:
    """Fill the page from the files from `start` on; return the file in whose middle it begins, to be asked again."""
    with closing(inquiry.answers(start)) as answers:
        for index, image, answer in answers:
            if page.skip >= answer["count"]:
                page.skip -= answer["count"]
            elif page.skip:
                return index, image
            else:
                _take(page, inquiry.path(index), answer)
            if page.is_truncated:
                break
    return None


def _take(page: _Page, path: str, answer: Message) -> None:
    if answer["kind"] != "matched":
        return
    told = answer["matches"]
    page.add(path, told)
    if answer["count"] - answer.get("skipped", 0) > len(told):
        page.is_truncated = True  # it has more than the page can take
