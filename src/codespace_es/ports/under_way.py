"""Which resumes and resolves run in this very process now: like the handles of live commands, it ends with the process.

A hold found queued by this instance, and not in here, was left by a story that failed: another resume may have it. So
is an action found being resolved.
"""

from codespace_es.vocabulary.identifiers import ActionId, ApprovalId


class UnderWay:
    """The resumes and resolves that are running, at most one a hold and one an action."""

    def __init__(self) -> None:
        self._running: set[ApprovalId | ActionId] = set()

    def begin(self, held: ApprovalId | ActionId) -> bool:
        """Note that a resume or resolve begins, and return True; False if one of this hold or action runs already."""
        if held in self._running:
            return False
        self._running.add(held)
        return True

    def end(self, held: ApprovalId | ActionId) -> None:
        """Note that the one that has begun is over."""
        self._running.remove(held)

    def __contains__(self, held: object) -> bool:
        return held in self._running
