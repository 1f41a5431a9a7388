"""Where a PostgreSQL is: a URL that is never shown with its password."""

from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import parse_qsl, quote, unquote, urlsplit

from adapters.settings.problem import StartupError
from adapters.settings.regular_file import is_other_than_regular

SCHEMES = ("postgresql", "postgres")

_SECRET_KEYS = frozenset({"password", "sslpassword"})
_FILE_KEYS = frozenset({"passfile", "sslcert", "sslkey", "sslrootcert", "sslcrl"})
"""Read by the driver, which would wait for what a FIFO says."""


@dataclass(frozen=True, slots=True)
class PostgresAddress:
    """A URL as PostgreSQL's own tools know it; `str` of it can be shown and recorded."""

    url: str = field(repr=False)

    def __str__(self) -> str:
        parts = urlsplit(self.url)
        user, _, hosts = parts.netloc.rpartition("@")
        name = user.partition(":")[0]
        shown = "&".join(
            f"{key}={quote(value, safe='/:,')}" for key, value in parse_qsl(parts.query) if key not in _SECRET_KEYS
        )
        return f"postgresql://{name + '@' if name else ''}{hosts}{parts.path}{'?' + shown if shown else ''}"

    def without_secrets(self, text: str) -> str:
        """Return `text` without this address' password, as somebody else's message may quote it."""
        parts = urlsplit(self.url)
        written = [value for key, value in parse_qsl(parts.query) if key in _SECRET_KEYS]
        password = parts.netloc.rpartition("@")[0].partition(":")[2]
        for secret in sorted({self.url, password, unquote(password), *written}, key=len, reverse=True):
            if secret:
                text = text.replace(secret, "***")
        return text


def is_postgres(store: str) -> bool:
    """Tell whether the setting `store` names a PostgreSQL."""
    return store.partition("://")[0] in SCHEMES and "://" in store


def postgres_address(store: str, *, origin: str) -> PostgresAddress:
    """Return the address that a setting gives.

    Raises:
        StartupError: it can't be understood; the message doesn't quote it, since it may hold a password. Or what it
            names as a file is none.
    """
    rule = f"{origin} must be like postgresql://USER@HOST:PORT/DATABASE; write other signs of a password as %XX."
    try:
        parts = urlsplit(store)
        hosts = parts.netloc.rpartition("@")[2]
        is_clear = not (parts.fragment or "@" in parts.path or "@" in parts.query)
        for host in hosts.split(","):
            port = host.rpartition("]")[2].partition(":")[2]
            is_clear = is_clear and (not port or port.isdigit())
    except ValueError:
        is_clear = False
    if not is_clear:
        # Half a password may stand where a host or a path was expected.
        raise StartupError(rule)
    for key, value in parse_qsl(parts.query):
        if key in _FILE_KEYS and is_other_than_regular(Path(value).expanduser()):
            raise StartupError(f"{origin}: {key} names {value}, which isn't a regular file.")
    return PostgresAddress(store)
