"""Which resumes run in this very process now: like the handles of live commands, it ends with the process.

A hold found queued by this instance, and not in here, was left by a story that failed: another resume may have it.
"""

from codespace_es.vocabulary.identifiers import ApprovalId


class UnderWay:
    """The resumes that are running, at most one a hold."""

    def __init__(self) -> None:
        self._running: set[ApprovalId] = set()

    def begin(self, approval_id: ApprovalId) -> bool:
        """Note that a resume begins, and return True; False if one of this hold runs already."""
        if approval_id in self._running:
            return False
        self._running.add(approval_id)
        return True

    def end(self, approval_id: ApprovalId) -> None:
        """Note that the one that has begun is over."""
        self._running.remove(approval_id)

    def __contains__(self, approval_id: object) -> bool:
        return approval_id in self._running
