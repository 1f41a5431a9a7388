"""The line that a result ends with when it is the first to tell of a pending action.

What is pending is the log's; what a client was told isn't in there, so this server remembers the last of it.
Source: decision 33; the pending-actions paper, *bias*, 2.
"""

from collections.abc import Mapping
from typing import Any

_REMEMBERED_MAX = 1_000


class BiasLines:
    """Says of each action once, when it is the next to be resolved, that it waits and how to resolve it."""

    def __init__(self) -> None:
        self._told: dict[str, None] = {}

    def line_for(self, hint: Mapping[str, Any] | None) -> str | None:
        """Return the line for a result with these `pending_actions`; None if there is nothing new to say."""
        head = (hint or {}).get("head")
        if head is None or head["id"] in self._told:
            return None
        self._told[head["id"]] = None
        while len(self._told) > _REMEMBERED_MAX:
            del self._told[next(iter(self._told))]
        return (
            f"Pending: {head['label']} ({head['source_tool_name']}). Nothing of it is done yet: call resolve with "
            f'action "apply" or "discard" and id "{head["id"]}".'
        )
