"""Pending actions: previews that wait to be resolved, one stack a session; and each action's place.

A session is the work that the producing call named, else the workspace. `events`, `state`, `rules`; `place` finds the
stack of an action by its id.
"""

from codespace_es.aggregates.pending.place import PLACE
from codespace_es.aggregates.pending.rules import PENDING

__all__ = ["PENDING", "PLACE"]
