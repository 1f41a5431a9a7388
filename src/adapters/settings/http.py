"""How the server is reached over HTTP: what `[http]`, the environment and `--http` say, checked."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from adapters.settings.model import HttpTable, WorkspaceTable
from adapters.settings.problem import StartupError

TOKEN_VARIABLE = "CODESPACE_HTTP_TOKEN"  # noqa: S105 - the variable's name
OPERATOR_TOKEN_VARIABLE = "CODESPACE_OPERATOR_TOKEN"  # noqa: S105 - the variable's name

_ADDRESS = re.compile(r"(?:\[(?P<literal>[0-9A-Fa-f:.%\w]+)\]|(?P<name>[^\s\[\]:/@]+)):(?P<port>[0-9]{1,5})")
_AUTHORITY = re.compile(r"(?:\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)(?::[0-9]{1,5})?")
_ORIGIN = re.compile(r"[a-z][a-z0-9+.-]*://(?:\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)(?::[0-9]{1,5})?")
_TOKEN = re.compile(r"[\x21-\x7e]+")


@dataclass(frozen=True, slots=True)
class HttpSettings:
    """Where to listen, and who is let in."""

    host: str = "127.0.0.1"
    port: int = 8787
    """0: any that is free."""
    token: str | None = field(default=None, repr=False)
    """What callers have to show; None: nothing, which is for loopback alone."""
    operator_token: str | None = field(default=None, repr=False)
    """What the operator has to show; None: the operator's API and pages are off."""
    allowed_hosts: tuple[str, ...] = ()
    allowed_origins: tuple[str, ...] = ()


def resolve_http(
    written: HttpTable, tables: Mapping[str, WorkspaceTable], environment: Mapping[str, str]
) -> HttpSettings:
    """Return the settings: the environment's tokens win over the file's, and a blank one is none.

    Args:
        written: The file's `[http]`.
        tables: The workspaces, none of which may hand a token on to commands.
        environment: The process' environment.

    Raises:
        StartupError: in one line, what is unusable; a token is never told.
    """
    _require_all(written.allowed_hosts, _AUTHORITY, "http.allowed_hosts", "a name with or without :PORT")
    _require_all(written.allowed_origins, _ORIGIN, "http.allowed_origins", "scheme://name with or without :PORT")
    for name, table in tables.items():
        for variable in (TOKEN_VARIABLE, OPERATOR_TOKEN_VARIABLE):
            if variable in table.pass_env:
                raise StartupError(f"Workspace {name!r}: pass_env would hand {variable} to commands; remove it.")
    token = _token(environment.get(TOKEN_VARIABLE), TOKEN_VARIABLE) or _token(written.token, "http.token")
    operator_token = _token(environment.get(OPERATOR_TOKEN_VARIABLE), OPERATOR_TOKEN_VARIABLE) or _token(
        written.operator_token, "http.operator_token"
    )
    if operator_token is not None and operator_token == token:
        raise StartupError(
            "The operator's token is also the agents' token, so whoever is held could grant. Give it its own."
        )
    return HttpSettings(
        host=written.host,
        port=written.port,
        token=token,
        operator_token=operator_token,
        allowed_hosts=tuple(written.allowed_hosts),
        allowed_origins=tuple(written.allowed_origins),
    )


def listening_at(settings: HttpSettings, address: str) -> HttpSettings:
    """Return `settings` with the address of the command line, `HOST:PORT`; an empty one changes nothing.

    Raises:
        StartupError: it is written otherwise.
    """
    if not address:
        return settings
    found = _ADDRESS.fullmatch(address)
    if found is None or int(found["port"]) > 65_535:
        raise StartupError(
            f"--http {address!r}: write HOST:PORT, such as 127.0.0.1:8787 or [::1]:8787; port 0 is any that is free."
        )
    return replace(settings, host=found["literal"] or found["name"], port=int(found["port"]))


def _token(text: str | None, place: str) -> str | None:
    token = (text or "").strip()
    if token and not _TOKEN.fullmatch(token):
        raise StartupError(f"{place} can't be sent in a header: use letters, digits and signs of ASCII, no spaces.")
    return token or None


def _require_all(entries: list[str], form: re.Pattern[str], place: str, told: str) -> None:
    for entry in entries:
        if not form.fullmatch(entry):
            raise StartupError(f"{place} {entry!r}: write {told}; patterns aren't supported, every entry is exact.")
