"""Errors that help to mend a patch: where it is wrong, what was expected, what stands there; at most 2 KiB."""

import json
from collections.abc import Mapping
from typing import Any

from codespace_es.vocabulary.errors import CodespaceError, ErrorCode
from codespace_es.vocabulary.limits import ERROR_EXCERPT_BYTES_MAX

_EXCERPT_CHARACTERS = 240
_EXCERPT_CHARACTERS_MIN = 4


def excerpt(text: str, characters_max: int = _EXCERPT_CHARACTERS) -> str:
    """Return `text`, cut with an ellipsis where it is longer than `characters_max`."""
    return text if len(text) <= characters_max else text[: characters_max - 1] + "…"


def refusal(code: ErrorCode, message: str, **detail: Any) -> CodespaceError:
    """Return an error whose detail holds what is given, without empty entries, within the cap.

    Long strings are cut evenly until the JSON of the detail fits. Source: V4A decision 6.
    """
    return CodespaceError(code, excerpt(message, 600), detail=within_cap(detail))


def within_cap(detail: Mapping[str, Any]) -> dict[str, Any]:
    """Return `detail` without None, its strings cut so that its JSON has at most ERROR_EXCERPT_BYTES_MAX bytes."""
    kept = {key: value for key, value in detail.items() if value is not None}
    characters_max = _EXCERPT_CHARACTERS
    while True:
        cut = {key: _cut(value, characters_max) for key, value in kept.items()}
        is_small = len(json.dumps(cut, ensure_ascii=True)) <= ERROR_EXCERPT_BYTES_MAX
        if is_small or characters_max <= _EXCERPT_CHARACTERS_MIN:
            return cut
        characters_max //= 2


def _cut(value: Any, characters_max: int) -> Any:
    if isinstance(value, str):
        return excerpt(value, characters_max)
    if isinstance(value, Mapping):
        return {key: _cut(entry, characters_max) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_cut(entry, characters_max) for entry in value]
    return value
