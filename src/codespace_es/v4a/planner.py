"""From a patch and the files as they are to a plan. Reads through the tree, writes nothing.

Sections run in order over an overlay, so each sees the result of those before it; the first that can't be carried out
refuses the whole patch. Source: V4A decisions 1 to 8; contract A3, B3.4.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import assert_never

from codespace_es.v4a.line_ends import edited_text, text_file
from codespace_es.v4a.matches import place_hunks
from codespace_es.v4a.net_change import net_change
from codespace_es.v4a.overlay import Overlay, VirtualFile, with_content
from codespace_es.v4a.patch import AddSection, DeleteSection, Patch, Section, UpdateSection
from codespace_es.v4a.plan import Plan
from codespace_es.v4a.refusal import excerpt, refusal, within_cap
from codespace_es.v4a.tree import PatchTree
from codespace_es.v4a.warning import PatchWarning
from codespace_es.vocabulary.errors import CodespaceError, ErrorCode
from codespace_es.vocabulary.workspace import PatchMatching


def plan_patch(
    patch: Patch,
    tree: PatchTree,
    *,
    matching: PatchMatching,
    protected: Callable[[str], bool],
    new_file_mode: int = 0o644,
) -> Plan:
    """Return what `patch` will do to `tree`.

    Args:
        patch: What the text says.
        tree: The files as they are; each is read at most once.
        matching: `strict` takes a hunk only at its one exact place.
        protected: Told a normalised path; true if it must not be written.
        new_file_mode: Permission bits of a file that the patch makes, umask applied.

    Raises:
        CodespaceError: INVALID_PATCH, PATH_PROTECTED, ADD_FILE_EXISTS, MOVE_DESTINATION_EXISTS, FILE_NOT_FOUND, and
            what the tree raises; `detail` has `path` as spelt, `section` and `patch_line`, for a hunk also `hunk`,
            `expected` and `nearest`.
    """
    planner = _Planner(tree, matching, protected, new_file_mode)
    for number, section in enumerate(patch.sections, start=1):
        try:
            planner.run(section)
        except CodespaceError as error:
            known = {"path": section.path, "section": number, "patch_line": section.patch_line_number}
            raise CodespaceError(error.code, error.message, detail=within_cap({**known, **error.detail})) from error
    return net_change(planner.overlay, planner.warnings)


class _Planner:
    def __init__(
        self, tree: PatchTree, matching: PatchMatching, protected: Callable[[str], bool], new_file_mode: int
    ) -> None:
        self.overlay = Overlay(tree)
        self.warnings: list[PatchWarning] = []
        self._tree = tree
        self._matching = matching
        self._protected = protected
        self._new_file_mode = new_file_mode

    def run(self, section: Section) -> None:
        """Carry out one section in the overlay."""
        match section:
            case AddSection():
                self._add(section)
            case DeleteSection():
                self._delete(section)
            case UpdateSection():
                self._update(section)
            case _:
                assert_never(section)

    def _add(self, section: AddSection) -> None:
        path = self._writable(section.path)
        if self.overlay.file(path) is not None:
            raise refusal(ErrorCode.ADD_FILE_EXISTS, f"'{excerpt(section.path, 200)}' exists already.")
        content = "".join([line + "\n" for line in section.lines]).encode()
        self.overlay.put(path, VirtualFile(content, self._new_file_mode, None))

    def _delete(self, section: DeleteSection) -> None:
        path = self._writable(section.path)
        self._existing(path, section.path)
        self.overlay.remove(path)

    def _update(self, section: UpdateSection) -> None:
        path = self._writable(section.path)
        file = self._existing(path, section.path)
        destination = path if section.move_to is None else self._destination(section, section.move_to, path)
        changed = self._edited(section, file, path) if section.hunks else file
        if destination != path:
            self.overlay.remove(path)
        self.overlay.put(destination, changed if changed is not file else replace(file))

    def _edited(self, section: UpdateSection, file: VirtualFile, path: str) -> VirtualFile:
        try:
            text = text_file(file.content.decode("utf-8"))
        except UnicodeDecodeError as error:
            message = f"'{excerpt(section.path, 120)}' is not valid UTF-8 at byte offset {error.start}."
            raise refusal(ErrorCode.INVALID_PATCH, message, byte_offset=error.start) from None
        placement = place_hunks(section.hunks, text, path=path, matching=self._matching)
        self.warnings += placement.warnings
        if not text.is_terminated:
            message = "the last line had no line end and gets one"
            self.warnings.append(PatchWarning("final_newline_added", path, message, line=len(text.lines)))
        content = edited_text(text, placement.edits, keeps_mark=placement.keeps_mark).encode()
        return with_content(file, content, text, placement.edits)

    def _destination(self, section: UpdateSection, move_to: str, source: str) -> str:
        at = {"path": move_to, "patch_line": section.move_line_number}
        try:
            path = self._writable(move_to)
            if path == source:
                raise refusal(ErrorCode.MOVE_DESTINATION_EXISTS, f"'{excerpt(move_to, 200)}' is moved onto itself.")
            if self.overlay.file(path) is not None:
                raise refusal(ErrorCode.MOVE_DESTINATION_EXISTS, f"'{excerpt(move_to, 200)}' exists already.")
        except CodespaceError as error:
            raise CodespaceError(error.code, error.message, detail={**at, **error.detail}) from error
        return path

    def _writable(self, spelt: str) -> str:
        path = self._tree.normalize(spelt)
        if self._protected(path):
            raise refusal(ErrorCode.PATH_PROTECTED, f"'{excerpt(spelt, 200)}' is protected here.")
        return path

    def _existing(self, path: str, spelt: str) -> VirtualFile:
        file = self.overlay.file(path)
        if file is None:
            lookalike = self._tree.did_you_mean(path)
            hint = "" if lookalike is None else f" There is '{excerpt(lookalike, 200)}'."
            raise refusal(
                ErrorCode.FILE_NOT_FOUND, f"'{excerpt(spelt, 200)}' does not exist.{hint}",
                **({} if lookalike is None else {"did_you_mean": lookalike}),
            )
        return file
