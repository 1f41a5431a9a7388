"""The `api` that `create_tool` is given: checks what an author hands over, and asks the server for the rest."""

import logging
from collections.abc import Mapping, Sequence
from typing import Any

from adapters.tool_host.child.asking import CURRENT, STORE_UNAVAILABLE, Asking
from adapters.tool_host.child.loading import Callbacks, Registry
from adapters.tool_host.child.telling import to_json
from codespace_es.tools import Callback, CodespaceError, ErrorCode, ExecOutcome, File, Match, PatchOutcome

_PUSH_FIELDS = ("label", "apply", "reject", "details", "sourceToolName", "source_tool_name", "payload")


class WorkspaceReads:
    """Reads of the call's workspace. Implements `codespace_es.tools.Workspace`."""

    def __init__(self, asking: Asking) -> None:
        self._asking = asking

    async def read(self, path: str) -> File:
        """Return a whole file. See `Workspace`."""
        return File(**await self._asking.ask("read", {"path": path}))

    async def find(self, glob: str | None = None, *, include_ignored: bool = False) -> list[str]:
        """Return the paths that match. See `Workspace`."""
        found = await self._asking.ask("find", {"glob": glob, "include_ignored": include_ignored})
        return list(found["paths"])

    async def search(
        self, pattern: str, *, regex: bool = False, glob: str | None = None, case_sensitive: bool = True,
        limit: int = 1_000,
    ) -> list[Match]:
        """Return matching lines. See `Workspace`."""
        query = {
            "pattern": pattern, "regex": regex, "glob": glob, "case_sensitive": case_sensitive, "limit": limit,
        }
        return [Match(**match) for match in (await self._asking.ask("search", query))["matches"]]


class AuthorsApi:
    """What one file may do. Implements `codespace_es.tools.Api`."""

    def __init__(self, source: str, asking: Asking, registry: Registry) -> None:
        self._source = source
        self._asking = asking
        self._registry = registry
        self.is_loading = True
        self.workspace = WorkspaceReads(asking)
        self.logger = logging.getLogger(f"custom tool {source}")

    def register_action(self, name: str, apply: Callback, reject: Callback | None = None) -> None:
        """Give pending actions callbacks that survive a restart. See `Api`."""
        if not self.is_loading:
            raise ValueError("register_action is for create_tool: what comes later isn't there after a restart.")
        if not isinstance(name, str) or not name.isidentifier() or len(name) > 64:
            raise ValueError(f"the name of an action has to be an identifier of at most 64 characters, not {name!r}.")
        _require_callbacks(apply, reject, "register_action")
        if name in self._registry.actions:
            owner = self._registry.action_sources[name]
            raise ValueError(f"an action is registered as {name!r} already, by {owner}.")
        self._registry.actions[name] = Callbacks(apply, reject)
        self._registry.action_sources[name] = self._source

    async def apply_patch(
        self, patch: str, *, expected_versions: Mapping[str, str] | None = None, operation_key: str | None = None,
        check_only: bool = False,
    ) -> PatchOutcome:
        """Apply a patch, or stage it within an apply. See `Api`."""
        outcome = await self._asking.ask("apply_patch", {
            "patch": patch, "expected_versions": dict(expected_versions or {}), "operation_key": operation_key,
            "check_only": check_only,
        })
        return PatchOutcome(**{**outcome, "files": tuple(outcome["files"])})

    async def exec(self, argv: Sequence[str], timeout: float | None = None) -> ExecOutcome:  # noqa: ASYNC109 - see Api
        """Run a command to its end. See `Api`."""
        if isinstance(argv, str):
            raise TypeError("argv is a list of strings: the program and its arguments.")
        return ExecOutcome(**await self._asking.ask("exec", {"argv": list(argv), "timeout": timeout}))

    async def push_pending_action(  # noqa: PLR0917 - see Api
        self,
        label: Any = None,
        apply: Callback | str | None = None,
        reject: Callback | None = None,
        details: Any = None,
        source_tool_name: str = "custom_tool",
        payload: Any = None,
    ) -> str:
        """Stage an action and return its id. See `Api`."""
        if label is not None and not isinstance(label, str):
            return await self.push_pending_action(**_fields_of(label))
        if CURRENT.get() is None:
            raise CodespaceError(ErrorCode.PENDING_STORE_UNAVAILABLE, STORE_UNAVAILABLE)
        if label is None or not label.strip():
            raise ValueError("push_pending_action needs a label: a short sentence that says what would be done.")
        if not isinstance(source_tool_name, str) or not source_tool_name.strip():
            raise ValueError("push_pending_action needs source_tool_name to be a text that isn't empty.")
        callbacks = self._callbacks(apply, reject, payload)
        to_json(details, "details")
        to_json(payload, "payload")
        pushed = await self._asking.ask(
            "push_pending_action",
            {
                "label": label, "action": apply if isinstance(apply, str) else None, "details": details,
                "source_tool_name": source_tool_name, "payload": payload,
            },
            on_answer=None if callbacks is None else lambda answer: self._keep(answer["action_id"], callbacks),
        )
        return str(pushed["action_id"])

    def _keep(self, action_id: str, callbacks: Callbacks) -> None:
        self._registry.closures[action_id] = callbacks

    def _callbacks(self, apply: Any, reject: Any, payload: Any) -> Callbacks | None:
        """Return the closures of an action; None for a registered one. Raises ValueError."""
        if not isinstance(apply, str):
            _require_callbacks(apply, reject, "push_pending_action")
            if payload is not None:
                raise ValueError("payload goes with the name of a registered action; a closure keeps what it needs.")
            return Callbacks(apply, reject)
        if self._registry.action_sources.get(apply) != self._source:
            known = ", ".join(name for name, owner in self._registry.action_sources.items() if owner == self._source)
            raise ValueError(f"no action is registered as {apply!r} by this file; registered: {known or 'none'}.")
        if reject is not None:
            raise ValueError("reject is registered together with apply: push the name alone.")
        return None


def _require_callbacks(apply: Any, reject: Any, function: str) -> None:
    if not callable(apply):
        raise ValueError(f"{function} needs apply: an async callable that takes the reason.")
    if reject is not None and not callable(reject):
        raise ValueError(f"{function} takes as reject an async callable that takes the reason, or nothing.")


def _fields_of(action: Any) -> dict[str, Any]:
    """Return the arguments that one mapping or object stands for. Raises ValueError."""
    if isinstance(action, Mapping):
        fields = {name: action.get(name) for name in _PUSH_FIELDS}
    else:
        fields = {name: getattr(action, name, None) for name in _PUSH_FIELDS}
    camel = fields.pop("sourceToolName")
    fields["source_tool_name"] = camel or fields["source_tool_name"] or "custom_tool"
    if fields["label"] is not None and not isinstance(fields["label"], str):
        raise ValueError("push_pending_action needs a label: a short sentence that says what would be done.")
    return fields
