"""What sentences of several aggregates are made of."""

from collections.abc import Callable, Mapping
from typing import Any

from codespace_es.vocabulary.event import Event, Fault

Sentences = Mapping[type[Event], Callable[[Any], str]]
"""How each class of event is told."""


def said(reason: str | None) -> str:
    """Return a reason behind a sentence; nothing where none was given."""
    return f" ({reason})" if reason else ""


def count(number: int, noun: str) -> str:
    """Return a number of things."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def because(fault: Fault | None) -> str:
    """Return a fault behind a sentence; nothing where there was none."""
    return f" ({fault.code}: {fault.message.rstrip('.')})" if fault is not None else ""
