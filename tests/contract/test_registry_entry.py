"""The entry for the MCP registry keeps the rules of its format, told here in our own words, and means what we run.

The format forbids no other keys; here one that it doesn't know is an error, so that a misspelt one is found.
Source: server.json of the MCP registry, format of 2025-12-11, and what its publishing adds.
"""

import copy
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest

ROOT = Path(__file__).parents[2]
FORMAT = "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json"

TEXT = {"type": "string"}
ADDRESS = {"type": "string", "pattern": r"^https?://\S+$"}
VERSION = {"type": "string", "maxLength": 255, "pattern": r"^[0-9]+\.[0-9]+\.[0-9]+([-+.]?[0-9A-Za-z.]+)?$"}


def record(required: tuple[str, ...] = (), **properties: Any) -> dict[str, Any]:
    """Return the schema of an object that has these keys and no others."""
    return {"type": "object", "required": list(required), "properties": properties, "additionalProperties": False}


_INPUT = {
    "description": TEXT, "default": TEXT, "placeholder": TEXT, "value": TEXT,
    "format": {"enum": ["string", "number", "boolean", "filepath"]},
    "isRequired": {"type": "boolean"}, "isSecret": {"type": "boolean"}, "choices": {"type": "array", "items": TEXT},
}
_VARIABLES = {"variables": {"type": "object", "additionalProperties": record(**_INPUT)}}
_ARGUMENT = {**_INPUT, **_VARIABLES, "isRepeated": {"type": "boolean"}}
POSITIONAL = {
    **record(("type",), type={"const": "positional"}, valueHint=TEXT, **_ARGUMENT),
    "anyOf": [{"required": ["value"]}, {"required": ["valueHint"]}],
}
NAMED = record(("type", "name"), type={"const": "named"}, name=TEXT, **_ARGUMENT)
ARGUMENTS = {"type": "array", "items": {"oneOf": [POSITIONAL, NAMED]}}
VARIABLE = record(("name",), name=TEXT, **_INPUT, **_VARIABLES)
REMOTE = record(("type", "url"), type={"enum": ["streamable-http", "sse"]}, url=ADDRESS,
                headers={"type": "array", "items": VARIABLE})
PACKAGE = record(
    ("registryType", "identifier", "transport"),
    registryType={"enum": ["npm", "pypi", "oci", "nuget", "mcpb"]}, registryBaseUrl=ADDRESS, identifier=TEXT,
    version=VERSION, fileSha256={"type": "string", "pattern": "^[a-f0-9]{64}$"}, runtimeHint=TEXT,
    runtimeArguments=ARGUMENTS, packageArguments=ARGUMENTS,
    environmentVariables={"type": "array", "items": VARIABLE},
    transport={"oneOf": [record(("type",), type={"const": "stdio"}), REMOTE]},
)
ENTRY = record(
    ("name", "description", "version"),
    **{"$schema": {"const": FORMAT}},
    name={"type": "string", "minLength": 3, "maxLength": 200, "pattern": r"^[a-zA-Z0-9.-]+/[a-zA-Z0-9._-]+$"},
    title={"type": "string", "minLength": 1, "maxLength": 100},
    description={"type": "string", "minLength": 1, "maxLength": 100},
    version=VERSION, websiteUrl=ADDRESS,
    repository=record(("url", "source"), url=ADDRESS, source=TEXT, id=TEXT, subfolder=TEXT),
    packages={"type": "array", "items": PACKAGE}, remotes={"type": "array", "items": REMOTE},
)
CHECK = jsonschema.Draft7Validator(ENTRY)


@pytest.fixture
def entry() -> dict[str, Any]:
    loaded = json.loads((ROOT / "server.json").read_text(encoding="utf-8"))
    assert isinstance(loaded, dict)
    return loaded


def test_the_entry_keeps_the_rules_of_its_format(entry: dict[str, Any]) -> None:
    assert [error.message for error in CHECK.iter_errors(entry)] == []


@pytest.mark.parametrize(("path", "value"), [
    (("description",), "x" * 101),
    (("name",), "codespace-es"),
    (("name",), "io.github/one/two"),
    (("version",), "latest"),
    (("$schema",), "https://static.modelcontextprotocol.io/schemas/2025-07-09/server.schema.json"),
    (("packages", 0, "version"), ">=0.1"),
    (("packages", 0, "transport"), {"type": "streamable-http"}),
    (("packages", 0, "registry_type"), "pypi"),
    (("packages", 0, "packageArguments", 0), {"type": "positional"}),
    (("packages", 0, "packageArguments", 1, "variables", "directory", "format"), "path"),
    (("packages", 0, "environmentVariables", 0), {"description": "no name"}),
])
def test_what_the_registry_would_refuse_is_found(entry: dict[str, Any], path: tuple[Any, ...], value: Any) -> None:
    broken: Any = copy.deepcopy(entry)
    place = broken
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value
    assert not CHECK.is_valid(broken)


def test_what_the_entry_has_a_client_run_is_what_the_program_takes(entry: dict[str, Any]) -> None:
    """Each variable in a value is declared, and the words are a command of ours with options of that command."""
    package, = entry["packages"]
    words = []
    for argument in package["packageArguments"]:
        assert set(re.findall(r"\{(\w+)\}", argument["value"])) == set(argument.get("variables", {}))
        words += [argument["name"], argument["value"]] if argument["type"] == "named" else [argument["value"]]
    program = Path(sys.executable).with_name(package["identifier"])
    command, *options = words
    told = subprocess.run([program, command, "--help"], capture_output=True, text=True, check=True).stdout
    for option in options[::2]:
        assert f"{option} " in told
    names = {variable["name"] for variable in package["environmentVariables"]}
    page = (ROOT / "docs" / "configuration.md").read_text(encoding="utf-8")
    assert [name for name in names if f"`{name}`" not in page] == []
