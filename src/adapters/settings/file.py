"""Reading a configuration file, TOML or JSON by its name's ending, into the checked model; errors in one line."""

import json
import re
import tomllib
from collections import Counter
from collections.abc import Iterator
from difflib import get_close_matches
from pathlib import Path

from pydantic import BaseModel, ValidationError

from adapters.settings.model import (
    FileSettings,
    HttpTable,
    WorkspaceTable,
)
from adapters.settings.problem import StartupError
from adapters.settings.regular_file import read_regular

_FILE_BYTES_MAX = 1024 * 1024
_NO_TEXT = re.compile("[\0\ud800-\udfff]")


def read_settings_file(path: Path) -> FileSettings:
    """Return what the file at `path` says.

    Raises:
        StartupError: it can't be read or understood, or asks for what this version hasn't got.
    """
    try:
        content = read_regular(path, bytes_max=_FILE_BYTES_MAX + 1)
    except OSError as error:
        raise StartupError(f"The configuration {path} can't be read: {error.strerror or error}.") from error
    if len(content) > _FILE_BYTES_MAX:
        raise StartupError(f"The configuration {path} is larger than {_FILE_BYTES_MAX} bytes.")
    return check_settings(_parse(path, content), origin=str(path))


def check_settings(written: object, *, origin: str) -> FileSettings:
    """Return `written`, the tables of a file called `origin`, as settings. Raises StartupError."""
    try:
        settings = FileSettings.model_validate(written)
    except ValidationError as error:
        raise StartupError(f"{origin}: {_first_problem(error)}") from error
    unusable = next(_unusable_text(settings.model_dump(), ()), None)
    if unusable is not None:
        raise StartupError(f"{origin}: {'.'.join(unusable)}: it holds a NUL, or half of a surrogate pair.")
    if settings.defaults.root is not None:
        raise StartupError(f"{origin}: defaults.root: a root belongs to one workspace; write it there.")
    for name, workspace in settings.workspaces.items():
        if workspace.root is None:
            raise StartupError(f"{origin}: workspaces.{name}.root is missing: it names the directory.")
    return settings


def _parse(path: Path, content: bytes) -> object:
    try:
        text = content.decode("utf-8-sig")  # some editors begin a file with a byte order mark
        if path.suffix == ".toml":
            return tomllib.loads(text)
        if path.suffix == ".json":
            return json.loads(text, object_pairs_hook=_each_key_once)
    except (ValueError, RecursionError) as error:  # neither parser says all that it raises: a number can be too long
        raise StartupError(f"{path}: not understood: {str(error).rstrip('.')}.") from error
    raise StartupError(f"The configuration {path} must end in .toml or .json.")


def _each_key_once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """Return an object of JSON whose keys differ, as those of TOML have to. Raises ValueError."""
    table = dict(pairs)
    if len(table) < len(pairs):
        (name, _count), *_ = Counter(key for key, _value in pairs).most_common(1)
        raise ValueError(f"the key {name!r} stands there twice")
    return table


def _unusable_text(value: object, place: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """Yield the places of texts that can't be a path, a variable or a name for the system."""
    if isinstance(value, str) and _NO_TEXT.search(value):
        yield place
    elif isinstance(value, dict):
        for name, each in value.items():
            yield from _unusable_text(each, (*place, ascii(name)[1:-1]))
            yield from _unusable_text(name, place)
    elif isinstance(value, list | tuple):
        for each in value:
            yield from _unusable_text(each, place)


def _first_problem(error: ValidationError) -> str:
    """Return the first thing that is wrong, and how many more there are."""
    problems = error.errors(include_url=False, include_input=False)
    first, rest = problems[0], len(problems) - 1
    place = ".".join(str(part) for part in first["loc"]) or "the file"
    if first["type"] == "extra_forbidden":
        told = f"{place}: unknown key{_nearest(first['loc'])}"
    elif first["type"] == "model_type":
        told = f"{place}: input should be a table of keys and values."
    else:
        told = f"{place}: {first['msg'][0].lower()}{first['msg'][1:]}."
    return told + (f" ({rest} more)" if rest else "")


def _nearest(place: tuple[int | str, ...]) -> str:
    known = list(_model_at(place).model_fields)
    close = get_close_matches(str(place[-1]), known, n=1)
    return f"; did you mean {close[0]!r}?" if close else f"; known are {', '.join(known)}."


def _model_at(place: tuple[int | str, ...]) -> type[BaseModel]:
    match place:
        case ("http", _):
            return HttpTable
        case ("defaults", _) | ("workspaces", _, _):
            return WorkspaceTable
        case _:
            return FileSettings

