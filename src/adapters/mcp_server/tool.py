"""What a tool is: its description for clients, its arguments and answer as models, and one call through the door."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from codespace_es.codespace import Codespace
from codespace_es.vocabulary.answer import Answer, Command
from codespace_es.vocabulary.event import Caller

Call = Callable[[Codespace, Any, Caller], Awaitable[Answer]]

Arrange = Callable[[Mapping[str, Any]], Mapping[str, Any]]


TellResumed = Callable[[str, dict[str, Any]], dict[str, Any]]


def as_resumed(_held: str, answer: dict[str, Any]) -> dict[str, Any]:
    """Return what the resume of a granted hold answered, where the call itself was held."""
    return answer


def as_given(given: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the arguments of a call, where they are the command's."""
    return given


LARGE_RESULT = {"anthropic/maxResultSizeChars": 500_000}
"""Asks a client not to put a long answer into a file. Source: Claude Code, MCP output limits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """One tool, as clients see it and as it is called."""

    name: str
    title: str
    description: str
    command: type[Command]
    answer: type[Answer]
    call: Call
    is_read_only: bool
    arrange: Arrange = as_given
    """Makes the command's arguments of the call's."""
    tell_resumed: TellResumed = as_resumed
    """Makes the call's answer of what was held, by its tool's name, and of what its resume answered."""
    is_destructive: bool = False
    is_idempotent: bool = False
    is_open_world: bool = False
    meta: dict[str, Any] = field(default_factory=dict)
