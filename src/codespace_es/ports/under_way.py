"""Which resumes run in this very process now: like the handles of live commands, it ends with the process.

A hold found queued by this instance, and not in here, was left by a story that failed: another resume may have it.
"""

from codespace_es.vocabulary.identifiers import ApprovalId


class UnderWay:
    """The resumes that are running."""

    def __init__(self) -> None:
        self._running: set[ApprovalId] = set()

    def begin(self, approval_id: ApprovalId) -> None:
        """Note that a resume has begun."""
        self._running.add(approval_id)

    def end(self, approval_id: ApprovalId) -> None:
        """Note that it is over."""
        self._running.discard(approval_id)

    def __contains__(self, approval_id: object) -> bool:
        return approval_id in self._running
