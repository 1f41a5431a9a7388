"""Reading headers as they came: bytes, maybe several of one name, maybe none."""

from http.cookies import CookieError, SimpleCookie

from starlette.types import Scope


def values(scope: Scope, name: bytes) -> list[bytes]:
    """Return what the headers of this name (lower case) say."""
    return [value for key, value in scope["headers"] if key == name]


def has(scope: Scope, name: bytes) -> bool:
    """Return whether there is such a header."""
    return bool(values(scope, name))


def only(scope: Scope, name: bytes) -> str:
    """Return the value of a header that is there exactly once, else an empty text."""
    found = values(scope, name)
    return found[0].decode("latin-1") if len(found) == 1 else ""


def is_chunked(scope: Scope) -> bool:
    """Return whether a body follows whose length isn't told."""
    return has(scope, b"transfer-encoding")


def declared_bytes(scope: Scope) -> int:
    """Return the length that the body is said to have; 0 if nothing usable is said."""
    declared = only(scope, b"content-length")
    return int(declared) if declared.isascii() and declared.isdigit() else 0


def is_reading(scope: Scope) -> bool:
    """Return whether the request, by its method, changes nothing."""
    return scope["method"] in ("GET", "HEAD")


def cookie(scope: Scope, name: str) -> str | None:
    """Return the value of one cookie, None if it didn't come."""
    try:
        found = SimpleCookie(only(scope, b"cookie")).get(name)
    except CookieError:
        return None
    return None if found is None else found.value
