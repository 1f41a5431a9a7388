"""Loading one source, a file or an entry point, and keeping the tools and actions that it gives.

Every fault is one sentence. A tool that can't be used is told of and left out; the others of its file are there.
"""

import importlib.util
import inspect
import logging
import os
import stat
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib.metadata import EntryPoint
from types import ModuleType
from typing import Any

from adapters.tool_host.child.checking import LoadedTool, ToolProblemError, check_tool
from adapters.tool_host.child.telling import describe
from codespace_es.tools import Callback
from codespace_es.vocabulary import limits

logger = logging.getLogger("custom tools")

ENTRY_POINTS = "codespace_es.tools"


class LoadProblemError(Exception):
    """A source gives nothing at all. The text is one sentence for its author."""


@dataclass(frozen=True, slots=True)
class Callbacks:
    """What applies or discards a pending action."""

    apply: Callback
    reject: Callback | None


@dataclass(frozen=True, slots=True)
class Registry:
    """Everything that was loaded, and the closures that wait to be resolved."""

    tools: dict[str, LoadedTool] = field(default_factory=dict)
    actions: dict[str, Callbacks] = field(default_factory=dict)
    """By registered name."""
    action_sources: dict[str, str] = field(default_factory=dict)
    closures: dict[str, Callbacks] = field(default_factory=dict)
    """By action id; they are lost with this process."""


async def load(source: Mapping[str, str], roots: list[str], api: Any, registry: Registry) -> dict[str, Any]:
    """Return what a source gives, as the server is told: `tools`, `problems` and `actions`.

    Raises:
        LoadProblemError: it gives nothing.
    """
    name = source["name"]
    try:
        made = await _create(_import(source, roots), api)
    except LoadProblemError:
        _forget_actions(registry, name)
        raise
    except BaseException as error:
        _forget_actions(registry, name)
        logger.warning("%s can't be loaded", name, exc_info=error)
        raise LoadProblemError(_sentence(error)) from error
    finally:
        api.is_loading = False
    return {
        **_accept(made, name, registry),
        "actions": [action for action, owner in registry.action_sources.items() if owner == name],
    }


def _accept(made: Any, source: str, registry: Registry) -> dict[str, Any]:
    """Keep the tools that can be used. Raises LoadProblemError where there is none at all."""
    given = list(made) if isinstance(made, list | tuple) else [made]
    if len(given) > limits.TOOLS_OF_SOURCE_MAX:
        raise LoadProblemError(f"create_tool returned {len(given)} tools; the limit is {limits.TOOLS_OF_SOURCE_MAX}.")
    tools, problems = [], []
    for number, each in enumerate(given, start=1):
        place = f"tool {number} of {len(given)}: " if len(given) > 1 else ""
        try:
            loaded = check_tool(each)
        except ToolProblemError as problem:
            problems.append(f"{place}{problem}")
            continue
        if loaded.name in registry.tools:
            problems.append(f"{place}its name {loaded.name!r} is taken by another tool; the first one stands.")
            continue
        registry.tools[loaded.name] = loaded
        tools.append(loaded.to_wire())
    if not given:
        problems.append("create_tool returned an empty list.")
    if not tools:
        _forget_actions(registry, source)
        raise LoadProblemError(" ".join(problems))
    return {"tools": tools, "problems": problems}


def _import(source: Mapping[str, str], roots: list[str]) -> Callable[..., Any]:
    """Return the `create_tool` of a source. Raises LoadProblemError, and whatever its code raises."""
    if "entry_point" in source:
        return _find_entry_point(source["entry_point"], roots)
    path = source["path"]
    _require_trusted(path, roots)
    directory = os.path.dirname(path)
    if directory not in sys.path:
        sys.path.append(directory)  # last, so that a file there is found by its neighbours and shadows nothing
    name = f"codespace_es_tool_{len(sys.modules)}_{os.path.basename(path).removesuffix('.py')}"
    specification = importlib.util.spec_from_file_location(name, path)
    if specification is None or specification.loader is None:
        raise LoadProblemError("it isn't a Python file: its name has to end in .py.")
    module = importlib.util.module_from_spec(specification)
    sys.modules[name] = module
    specification.loader.exec_module(module)
    return _create_tool_of(module)


def _find_entry_point(value: str, roots: list[str]) -> Callable[..., Any]:
    entry_point = EntryPoint("tool", value, ENTRY_POINTS)
    found = importlib.util.find_spec(entry_point.module)
    if found is None:
        raise LoadProblemError(f"there is no module {entry_point.module!r}.")
    if found.origin is not None and os.path.isabs(found.origin):
        _require_trusted(found.origin, roots)
    target = entry_point.load()
    return _create_tool_of(target) if isinstance(target, ModuleType) else target


def _require_trusted(path: str, roots: list[str]) -> None:
    """Refuse a file that an agent, or a stranger, could have written. Raises LoadProblemError."""
    real = os.path.realpath(path)
    for root in roots:
        if real == root or real.startswith(root.rstrip("/") + "/"):
            raise LoadProblemError(f"it lies in the workspace {root}, where an agent could have written it.")
    found = os.stat(real)
    if not stat.S_ISREG(found.st_mode):
        raise LoadProblemError("it isn't a regular file.")
    if found.st_uid not in (0, os.getuid()) or found.st_mode & stat.S_IWOTH:
        raise LoadProblemError("others than you and the system may write it: mend its owner or its permissions.")


def _create_tool_of(module: ModuleType) -> Callable[..., Any]:
    create = getattr(module, "create_tool", None)
    if create is None:
        raise LoadProblemError("it has no create_tool(api).")
    if not callable(create):
        raise LoadProblemError(f"its create_tool can't be called: it is a {type(create).__name__}.")
    found: Callable[..., Any] = create
    return found


async def _create(create: Callable[..., Any], api: Any) -> Any:
    made = create(api)
    return await made if inspect.isawaitable(made) else made


def _forget_actions(registry: Registry, source: str) -> None:
    for action in [action for action, owner in registry.action_sources.items() if owner == source]:
        del registry.actions[action], registry.action_sources[action]


def _sentence(error: BaseException) -> str:
    if isinstance(error, SyntaxError):
        return f"{type(error).__name__}: {error.msg} (line {error.lineno})."
    return f"{describe(error).rstrip('.')}."
