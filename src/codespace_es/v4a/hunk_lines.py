"""The lines of a hunk as they are placed: which it looks for, what it makes of them, and the blank one it may drop."""

from dataclasses import dataclass, field

from codespace_es.v4a.line_ends import Edit


@dataclass(frozen=True, slots=True)
class HunkLines:
    """Marks and texts of a hunk, side by side."""

    marks: str
    texts: tuple[str, ...]
    old_lines: list[str] = field(init=False)
    """Context and removals."""

    def __post_init__(self) -> None:
        """Pick the old lines once: they are asked for often."""
        old_lines = [text for mark, text in zip(self.marks, self.texts, strict=True) if mark != "+"]
        object.__setattr__(self, "old_lines", old_lines)

    @property
    def has_old_lines(self) -> bool:
        """There is something to look for."""
        return bool(self.old_lines)

    @property
    def is_pure_addition(self) -> bool:
        """There is nothing to look for."""
        return not self.old_lines

    @property
    def ends_in_blank(self) -> bool:
        """The last old line is empty, so the hunk may be tried without it."""
        return bool(self.old_lines) and not self.old_lines[-1]

    @property
    def is_last_blank_idle(self) -> bool:
        """The last old line is context and nothing is written below it: without it the hunk writes the same."""
        return self.marks.endswith(" ")

    @property
    def removes_first(self) -> bool:
        """The first old line is removed."""
        return next((mark for mark in self.marks if mark != "+"), "") == "-"

    def without_last_blank(self) -> "HunkLines":
        """Return the hunk without its last old line, and without its last new line if that is empty too.

        A context line that is dropped as an old line alone becomes an addition, one dropped as a new line alone a
        removal. Source: V4A reference, section 5.6.
        """
        marks, texts = list(self.marks), list(self.texts)
        last_old = max(index for index, mark in enumerate(marks) if mark != "+")
        last_new = max((index for index, mark in enumerate(marks) if mark != "-"), default=None)
        marks[last_old] = "+" if marks[last_old] == " " else ""
        if last_new is not None and not texts[last_new]:
            marks[last_new] = "-" if marks[last_new] == " " else ""
        kept = [index for index, mark in enumerate(marks) if mark]
        return HunkLines("".join(marks), tuple([texts[index] for index in kept]))

    def edits(self, start: int) -> list[Edit]:
        """Return what the hunk does to a file in which its first old line is line `start` (0-based)."""
        edits: list[Edit] = []
        position, run_start = start, start
        new_lines: list[str] = []
        for mark, text in zip(self.marks, self.texts, strict=True):
            if mark == "+":
                new_lines.append(text)
                continue
            if mark == " ":
                if new_lines or run_start < position:
                    edits.append(Edit(run_start, position, tuple(new_lines)))
                    new_lines = []
                run_start = position + 1
            position += 1
        if new_lines or run_start < position:
            edits.append(Edit(run_start, position, tuple(new_lines)))
        return edits
