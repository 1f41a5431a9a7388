"""Operations: what was about to change, and what came of it."""

from codespace_es.aggregates.operation import OperationFinished, OperationMinted, OperationReverted
from codespace_es.projections.sentences.words import Sentences, because, count
from codespace_es.vocabulary.file_change import PlannedFile

_PATHS_SHOWN_MAX = 3


def _operation_minted(event: OperationMinted) -> str:
    who = "An undo" if event.source == "revert" else event.told_source
    if not event.plan:
        return f"{who} in workspace {event.workspace_id} was recorded, with nothing planned."
    verb = "would change" if event.check_only else "is about to change"
    others = f" and {count(len(event.also_reverts), 'older operation')}" if event.also_reverts else ""
    purpose = f" of {event.reverts}{others}" if event.reverts is not None else ""
    return f"{who}{purpose} {verb} {_paths(event.plan)} in workspace {event.workspace_id}."


def _operation_finished(event: OperationFinished) -> str:
    sentence = {
        "checked": "The preview was answered; nothing was written",
        "applied": "Every planned file has its new content",
        "rejected": "The request was refused; nothing was written",
        "failed_rolled_back": "Writing failed, and every file is as it was before",
        "failed_partial": "Writing failed, and some files have changed",
        "unknown": "What became of the files can't be said",
    }[event.status]
    how = ", found after a crash" if event.reason == "recovered" else ""
    return f"{sentence}{how}{because(event.fault)}."


def _operation_reverted(event: OperationReverted) -> str:
    return f"It was undone by {event.by}."


def _paths(plan: tuple[PlannedFile, ...]) -> str:
    shown = ", ".join(planned.path for planned in plan[:_PATHS_SHOWN_MAX])
    rest = len(plan) - _PATHS_SHOWN_MAX
    return f"{shown} and {count(rest, 'more file')}" if rest > 0 else shown


OPERATION_SENTENCES: Sentences = {
    OperationMinted: _operation_minted,
    OperationFinished: _operation_finished,
    OperationReverted: _operation_reverted,
}
