"""What a producer, a tool host and a caller do with pending actions, in few words; a refusal is its wire form."""

from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

from codespace_es.aggregates.pending import PENDING
from codespace_es.command_handlers.resolve_request import ResolveAction
from codespace_es.command_handlers.stacks import ReadStack, Session, read_stack
from codespace_es.command_handlers.staging import LoggedPendingActions
from codespace_es.ports.pending_actions import (
    Closure,
    Effect,
    NewAction,
    PushedAction,
    RegisteredCallback,
    StagedEdit,
    StagedEdits,
)
from codespace_es.ports.tool_host import ActionCall, CallbackLostError, CallbackResult
from codespace_es.vocabulary.event import ABSENT, Caller
from codespace_es.vocabulary.file_change import digest_of
from codespace_es.vocabulary.identifiers import ActionId, RequestId
from support.holds import ask
from support.server import Server

CALLER = Caller("mcp", RequestId("req-1"), "tests/1")

Apply = Callable[[ActionCall], Awaitable[CallbackResult]]
Reject = Callable[[ActionCall], Awaitable[CallbackResult | None]]


class FakeToolHost:
    """Callbacks in this process: `ToolHost` by dictionaries. A registered one is known in every server that has it."""

    def __init__(self, handlers: Mapping[str, Apply] | None = None) -> None:
        self.handlers: dict[str, Apply] = dict(handlers or {})
        self.rejects: dict[str, Reject] = {}
        self.closures: dict[ActionId, Apply] = {}
        self.calls: list[ActionCall] = []
        self.forgotten: list[ActionId] = []

    async def apply(self, call: ActionCall) -> CallbackResult:
        self.calls.append(call)
        known = self.closures.get(call.action_id) if call.handler is None else self.handlers.get(call.handler)
        if known is None:
            raise CallbackLostError("It is gone.")
        return await known(call)

    async def reject(self, call: ActionCall) -> CallbackResult | None:
        self.calls.append(call)
        if call.handler is None and call.action_id not in self.closures:
            raise CallbackLostError("It is gone.")
        known = self.rejects.get(call.handler or call.action_id)
        return None if known is None else await known(call)

    def forget(self, action_id: ActionId) -> None:
        self.forgotten.append(action_id)
        self.closures.pop(action_id, None)


def session_of(server: Server, work_id: str | None = None) -> Session:
    """Return the session of a work, or of the workspace, as this server calls it."""
    return Session(next(iter(server.world.workspaces.values())), work_id)


def store_of(server: Server, work_id: str | None = None, caller: Caller = CALLER) -> LoggedPendingActions:
    """Return the store that a tool would be given."""
    return LoggedPendingActions(server.world, session_of(server, work_id), caller)


async def push(
    server: Server, effect: Effect, *, label: str = "Do it", tool: str = "custom", work_id: str | None = None,
    details: Any = None,
) -> PushedAction:
    """Stage an action."""
    return await store_of(server, work_id).push(NewAction(label, tool, effect, {"text": "a preview"}, details))


async def push_edits(
    server: Server, root: Path, changes: Mapping[str, bytes | None], *, work_id: str | None = None,
    label: str = "Edit", tool: str = "ast_edit",
) -> PushedAction:
    """Stage exact bytes for files as they are now; None deletes."""
    edits = tuple(
        StagedEdit(path, digest_of((root / path).read_bytes()) if (root / path).exists() else ABSENT, after)
        for path, after in changes.items()
    )
    return await push(server, StagedEdits(edits), label=label, tool=tool, work_id=work_id)


async def push_handler(server: Server, handler: str, payload: Any = None, **more: Any) -> PushedAction:
    """Stage a durable callback."""
    return await push(server, RegisteredCallback(handler, payload), **more)


async def push_closure(server: Server, host: FakeToolHost, apply: Apply, **more: Any) -> PushedAction:
    """Stage a closure of this server's tool host."""
    pushed = await push(server, Closure(), **more)
    host.closures[pushed.action_id] = apply
    return pushed


async def resolve(server: Server, action: str = "apply", **more: Any) -> dict[str, Any]:
    """Resolve as a client does."""
    return await ask(server, ResolveAction.model_validate({"action": action, **more}))


async def stack_of(server: Server, work_id: str | None = None) -> ReadStack:
    """Return the stack with all that was ever recorded of it."""
    stack = await read_stack(server.world, session_of(server, work_id).stream_id)
    recorded = await server.world.log.read_stream(stack.folded.stream_id)
    assert PENDING.fold_recorded(recorded) == stack.state
    assert len(recorded) == stack.folded.version
    return ReadStack(stack.folded, recorded)


async def waiting(server: Server, work_id: str | None = None) -> list[str]:
    """Return the labels of what isn't over, oldest first."""
    return [each.label for each in (await stack_of(server, work_id)).state.unresolved]


def returns(text: str = "done", **more: Any) -> Apply:
    """Return a callback that returns this."""

    async def apply(_call: ActionCall) -> CallbackResult:
        return CallbackResult(text, **more)

    return apply


def raises(error: Exception) -> Apply:
    """Return a callback that raises this."""

    async def apply(_call: ActionCall) -> CallbackResult:
        raise error

    return apply


def adds(path: str, text: str = "new") -> str:
    """Return a patch that adds a file."""
    return f"*** Begin Patch\n*** Add File: {path}\n+{text}\n*** End Patch\n"
