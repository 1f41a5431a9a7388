"""Telling the server what authors' code gave, or how it failed: as JSON, or in one line."""

import json
from typing import Any

from codespace_es.tools import CodespaceError


def to_json(value: Any, name: str) -> str:
    """Return `value` as JSON. Raises ValueError, naming it, where it has no such form."""
    try:
        return json.dumps(value, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise ValueError(f"{name} has to be JSON: {error}") from error


def fault_of(error: BaseException) -> dict[str, Any]:
    """Return how a call failed: in words, and with the code that the server had given, where it was that."""
    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    if isinstance(error, CodespaceError):
        told = {"code": error.code, "message": error.message, "detail": error.detail}
        return {"problem": error.message, "error": told}
    return {"problem": describe(error)}


def describe(error: BaseException) -> str:
    """Return an error in one line; one whose own text can't be had is named alone."""
    if isinstance(error, CodespaceError):
        return error.message
    try:
        text = " ".join(str(error).split())
    except Exception:
        text = ""
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
