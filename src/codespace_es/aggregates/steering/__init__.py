"""Steering: the works and intents of one workspace, in one stream.

Adopting, detaching, the order of claims and the end of a work are then rules over one fold: `events`, `state`, `rules`.
"""

from codespace_es.aggregates.steering.rules import STEERING

__all__ = ["STEERING"]
