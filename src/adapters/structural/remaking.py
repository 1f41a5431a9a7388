"""What a rewrite would make of the files in scope: new contents with what they were made from, and nothing else."""

import base64
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, field

from adapters.structural.crew import Crew, TimeUpError
from adapters.structural.inquiry import Inquiry, open_inquiry
from adapters.structural.patterns import unbound_names
from adapters.wire import Message
from codespace_es.ports.files import WorkspaceFiles
from codespace_es.ports.structural_search import RewriteFindings, Rewriting, RewrittenFile, StructuralScope
from codespace_es.vocabulary import limits
from codespace_es.vocabulary.errors import CodespaceError, ErrorCode
from codespace_es.vocabulary.file_change import FileImage


@dataclass(slots=True)
class _Tally:
    limit: int | None
    files_max: int
    files: list[RewrittenFile] = field(default_factory=list)
    replacement_count: int = 0
    match_count: int = 0
    is_limit_reached: bool = False

    @property
    def room(self) -> int | None:
        """How many more replacements may be made; None: any number."""
        return None if self.limit is None else self.limit - self.replacement_count

    def add(self, path: str, image: FileImage, answer: Message) -> None:
        if "overlap" in answer:
            first, second = answer["overlap"]
            raise CodespaceError(
                ErrorCode.INVALID_ARGUMENT,
                f"Overlapping replacements in {path}, at lines {first} and {second}: make the patterns narrower, or "
                "apply the inner ones first and the outer ones in a second call.",
                detail={"field": "ops", "path": path, "lines": [first, second]},
            )
        if answer.get("kept"):
            self.replacement_count += answer["kept"]
            self.files.append(RewrittenFile(
                path, image, base64.b64decode(answer["content"]), answer["kept"], answer.get("broken_line"),
            ))


def rewrite_files(
    crew: Crew, files: WorkspaceFiles, scope: StructuralScope, rewritings: Sequence[Rewriting],
    *, limit: int | None, files_max: int, is_left: Callable[[], bool],
) -> RewriteFindings:
    """Return what the first `limit` matches would become. Raises the port's errors, and as `Crew.answers`."""
    tally = _Tally(limit, files_max)
    inquiry = open_inquiry(
        crew, files, scope, [each.pattern for each in rewritings],
        replacements=[each.replacement for each in rewritings], keep=0, is_left=is_left,
    )
    try:
        inquiry.check()
        _rewrite(inquiry, tally)
    except TimeUpError:
        raise CodespaceError(
            ErrorCode.TIMEOUT,
            f"Looking at all files takes more than {limits.STRUCTURAL_SECONDS_MAX} s: name fewer in paths. "
            "Nothing is staged.",
        ) from None
    return RewriteFindings(
        files=tuple(tally.files),
        match_count=tally.match_count,
        is_limit_reached=tally.is_limit_reached,
        unbound=tuple(dict.fromkeys(
            name for each in rewritings for name in unbound_names(each.pattern, each.replacement)
        )),
        coverage=inquiry.coverage(),
    )


def _rewrite(inquiry: Inquiry, tally: _Tally) -> None:
    with closing(inquiry.answers()) as answers:
        for index, image, answer in answers:
            tally.match_count += answer["count"]
            changes = answer.get("changes", 0)
            if changes and (len(tally.files) >= tally.files_max or tally.room == 0):
                tally.is_limit_reached = True
                return
            if tally.room is not None and changes > tally.room:
                tally.is_limit_reached = True
                break
            tally.add(inquiry.path(index), image, answer)
        else:
            return
    # Of this file only the first matches are wanted: whether those overlap, and parse, is another question.
    assert tally.room is not None, "it was exceeded"
    tally.add(inquiry.path(index), image, inquiry.ask_again(index, image, limit=tally.room))
