"""Making pages from templates. Everything that is told may be hostile: a label, a file's content, a client's name.

Every value is escaped, and what has no look of its own, such as a sign that turns the reading direction, is spelt out.
Beside that the browser is told to run nothing but the console's script, and to ask nobody else for anything.
"""

import json
import re
import shlex
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cache
from hashlib import sha256
from importlib.resources import files
from types import MappingProxyType
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape
from starlette.requests import Request
from starlette.responses import Response

from codespace_es.vocabulary.visible_text import spelt_out
from replay import markup
from replay.page_style import STYLE

_SCRIPT_NAME, _STYLE_NAME, _ICON_NAME = "console.js", "console.css", "icon.svg"

PAGE_HEADERS: Mapping[str, str] = MappingProxyType({
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; "
        "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "same-origin",  # without a referrer, browsers hide a form's Origin too
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "cache-control": "no-store",
})

_COLOURS = re.compile("\x1b\\[[0-9;]*m|\r(?=\n)")
"""Signs that set a terminal's colours, and the first half of its line ends."""

_LOOKS = MappingProxyType({
    "applied": "good", "checked": "link", "granted": "good", "consumed": "good", "done": "good", "active": "good",
    "rejected": "odd", "pending": "odd", "expired": "odd", "queued": "link", "claimed": "good", "closing": "odd",
    "failed_rolled_back": "bad", "failed_partial": "bad", "unknown": "bad", "denied": "bad", "blocked": "bad",
    "undone": "odd", "running": "odd", "timeout": "bad", "signaled": "bad", "terminated": "bad",
})
_PLACES = MappingProxyType({
    "op": "operations", "proc": "processes", "appr": "approvals", "work": "works",
})
"""Where what has such an id is shown."""

_UUID_REST = len("-0000-0000-0000-000000000000")
"""How much of an id's end says nothing to a reader."""


def page(request: Request, template: str, *, status: int = 200, **told: Any) -> Response:
    """Return a page; what it shows is at least as new as `request.state.position`, where that is known."""
    position = getattr(request.state, "position", None)
    text = _environment().get_template(template).render(here=request.url.path, position=position, **told)
    return Response(text, status, PAGE_HEADERS, "text/html")


@cache
def static_files() -> Mapping[str, tuple[bytes, str]]:
    """Return content and media type of each file that pages ask for; the style sheet begins with that of reports."""
    directory = files("adapters.http.console") / "static"
    return {
        _SCRIPT_NAME: ((directory / _SCRIPT_NAME).read_bytes(), "text/javascript"),
        _ICON_NAME: ((directory / _ICON_NAME).read_bytes(), "image/svg+xml"),
        _STYLE_NAME: (STYLE.encode() + (directory / _STYLE_NAME).read_bytes(), "text/css"),
    }


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("adapters.http.console"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_finalize,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(
        moment=_moment, look=lambda state: _LOOKS.get(state, ""), lines=_lines, output=_output, as_written=escape,
        words=shlex.join, short=_short, json=_json,
    )
    environment.globals.update(
        diff=lambda text: Markup(markup.diff(text)),  # noqa: S704 - escaped line by line
        place_of=_place_of,
        icon_url=_url(_ICON_NAME),
        script_url=_url(_SCRIPT_NAME),
        style_url=_url(_STYLE_NAME),
    )
    return environment


def _finalize(value: Any) -> Any:
    """Return what a template puts out: text that can be seen through. The templates' own text doesn't come here."""
    return spelt_out(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _lines(text: str) -> Markup:
    """Return text of several lines, for an element that keeps them."""
    return Markup("\n".join(markup.shown_lines(text)))  # noqa: S704 - escaped line by line


def _json(told: Any) -> Markup:
    """Return what a tool has said, as JSON that is easy to read."""
    return _lines(json.dumps(told, indent=2, ensure_ascii=False))


def _output(text: str) -> Markup:
    """Return what a program printed, without colours; the page's script does the same to what comes later."""
    return _lines(_COLOURS.sub("", text))


def _moment(at: datetime | int | None) -> str:
    return markup.moment(datetime.fromtimestamp(at, UTC) if isinstance(at, int) else at)


def _place_of(name: str) -> str | None:
    """Return the path where the thing of this id is shown, None if there is no page for its kind."""
    place = _PLACES.get(name.partition("-")[0])
    return None if place is None else f"/console/{place}/{name}"


def _short(name: str) -> str:
    """Return an id as `op-1a2b3c4d`: its kind, whatever its length, and the first group of its UUID."""
    return name[:-_UUID_REST] if len(name) > _UUID_REST else name


def _url(name: str) -> str:
    content, _kind = static_files()[name]
    return f"/console/static/{name}?v={sha256(content).hexdigest()[:16]}"
