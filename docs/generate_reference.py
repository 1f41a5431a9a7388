"""Write the reference pages that are made from the code: `python docs/generate_reference.py`.

A test compares the pages with what this makes, so they can't drift. `--check` writes nothing and fails on a difference.
"""

import ast
import json
import sys
from collections.abc import Iterator, Mapping
from itertools import groupby
from pathlib import Path
from types import UnionType
from typing import Any, ForwardRef, Literal, Union, get_args, get_origin

REPOSITORY = Path(__file__).resolve().parents[1]
REFERENCE = REPOSITORY / "docs" / "reference"

if __name__ == "__main__":
    sys.path[:0] = [str(REPOSITORY / "src"), str(REPOSITORY)]

from pydantic import BaseModel  # noqa: E402
from pydantic.fields import FieldInfo  # noqa: E402

from adapters.http.openapi import openapi_document  # noqa: E402
from codespace_es.event_catalogue import CATALOGUE  # noqa: E402
from codespace_es.vocabulary import limits  # noqa: E402
from codespace_es.vocabulary.errors import ERROR_SPECS  # noqa: E402
from codespace_es.vocabulary.event import Body, Envelope, Event, Fault  # noqa: E402
from codespace_es.vocabulary.file_change import FileFinding, PlannedFile  # noqa: E402

_NOTE = "<!-- Made by docs/generate_reference.py from the code: change it there. -->"
_PARTS: tuple[type[BaseModel], ...] = (Envelope, Body, Fault, PlannedFile, FileFinding)
"""What several events hold, or every one; shown once."""


def pages() -> Mapping[str, str]:
    """Return the text of each page by its file name."""
    return {
        "events.md": events_page(),
        "errors.md": errors_page(),
        "limits.md": limits_page(),
        "openapi.json": json.dumps(openapi_document(), indent=1, ensure_ascii=False) + "\n",
    }


def events_page() -> str:
    """Return the page of every event, stream by stream, in the catalogue's order."""
    lines = [
        "# Events", "", _NOTE, "",
        "Everything that the product knows is a fold over these. A stored event is never edited; a new meaning gets a",
        "new topic. Fields marked `?` are left out when they don't apply, never null.", "",
    ]
    for stream, kinds in groupby(CATALOGUE.values(), key=lambda kind: kind.TOPIC.partition(".")[0]):
        lines += [f"## {stream}", ""]
        for kind in kinds:
            lines += [f"### `{kind.TOPIC}`", "", _first_line(kind), "", *_table(kind)]
    lines += ["## What events are made of", ""]
    for part in _PARTS:
        lines += [f"### {part.__name__}", "", _first_line(part), "", *_table(part)]
    return "\n".join(lines).rstrip() + "\n"


def errors_page() -> str:
    """Return the page of every error code, in the order in which they were added."""
    lines = [
        "# Errors", "", _NOTE, "",
        "A failed call answers `{code, message, retry, remedy}`, with `operation_id`, `approval_id` or `process_id`",
        "when one is known, and the rest in `detail`. Codes are only ever added.", "",
        "`retry`: may the same request succeed later: `never`, `after_change` of something, or `now`.", "",
        "| code | retry | HTTP | what to do |", "| --- | --- | --- | --- |",
    ]
    lines += [
        f"| `{code}` | {spec.retry} | {spec.http_status} | {spec.remedy} |" for code, spec in ERROR_SPECS.items()
    ]
    return "\n".join(lines) + "\n"


def limits_page() -> str:
    """Return the page of every limit, under the headings that its module has."""
    lines = [
        "# Limits", "", _NOTE, "",
        "Every bound of the product. The unit is in the name; a change of any is a change for users.", "",
    ]
    for heading, named in groupby(_limits(), key=lambda limit: limit[0]):
        lines += [f"## {heading}", "", "| limit | value | |", "| --- | --- | --- |"]
        lines += [f"| `{name}` | {value:,} | {note} |".replace("|  |", "| |") for _, name, value, note in named]
        lines.append("")
    return "\n".join(lines).rstrip() + "\n"


def _limits() -> Iterator[tuple[str, str, int, str]]:
    """Yield heading, name, value and note of each limit, as the module's source has them."""
    source = Path(limits.__file__).read_text(encoding="utf-8")
    statements = ast.parse(source).body
    rows = source.splitlines()
    for statement, following in zip(statements, [*statements[1:], None], strict=True):
        if not isinstance(statement, ast.Assign) or not isinstance(statement.targets[0], ast.Name):
            continue
        above = [row for row in rows[: statement.lineno] if row.startswith("# ")]
        name = statement.targets[0].id
        yield (above[-1][2:] if above else "Units"), name, getattr(limits, name), _docstring(following)


def _docstring(statement: ast.stmt | None) -> str:
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
        return " ".join(str(statement.value.value).split())
    return ""


def _first_line(kind: type[BaseModel]) -> str:
    return (kind.__doc__ or "").strip().partition("\n")[0]


def _table(kind: type[BaseModel]) -> list[str]:
    if issubclass(kind, Event):
        kind.model_rebuild()
    if not kind.model_fields:
        return []
    rows = [f"| `{name}` | {_type_of(field)} | {field.description} |" for name, field in kind.model_fields.items()]
    return ["| field | type | meaning |", "| --- | --- | --- |", *rows, ""]


def _type_of(field: FieldInfo) -> str:
    text = _named(field.annotation)
    return text if field.is_required() else text + "?"


def _named(annotation: Any) -> str:
    """Return a type as the page names it; an optional one without its None."""
    origin, inner = get_origin(annotation), get_args(annotation)
    if origin is Literal:
        return " \\| ".join(f"`{value}`" for value in inner)
    if origin in (Union, UnionType):
        return " \\| ".join(_named(each) for each in inner if each is not type(None))
    if origin in (tuple, list):
        return f"list of {_named(inner[0])}"
    if origin is not None and inner:
        return f"map of {_named(inner[0])} to {_named(inner[1])}"
    if isinstance(annotation, ForwardRef):
        return annotation.__forward_arg__
    return getattr(annotation, "__name__", str(annotation))


def main() -> int:
    """Write the pages, or compare them; return the exit status."""
    is_check = "--check" in sys.argv[1:]
    stale = []
    for name, text in pages().items():
        path = REFERENCE / name
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            stale.append(name)
            if not is_check:
                path.write_text(text, encoding="utf-8")
    if is_check and stale:
        sys.stderr.write(f"stale: {', '.join(stale)}; run python docs/generate_reference.py\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
