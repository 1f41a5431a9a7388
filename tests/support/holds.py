"""What a client does with a hold, in few words: ask, grant, deny, resume, look; a refusal is its code."""

from pathlib import Path
from typing import Any

from adapters.log.reader import LogReader
from codespace_es.aggregates.approval import APPROVAL, ApprovalCreated, ApprovalState
from codespace_es.command_handlers.asking import AskApproval
from codespace_es.command_handlers.deciding import CreateHold, ResolveHold
from codespace_es.command_handlers.patching import ApplyPatch
from codespace_es.command_handlers.resuming import ResumeOperation
from codespace_es.event_catalogue import CATALOGUE
from codespace_es.invocation import ExecCommand
from codespace_es.vocabulary.answer import Command
from codespace_es.vocabulary.errors import CodespaceError
from codespace_es.vocabulary.event import Channel
from codespace_es.vocabulary.identifiers import StreamId
from replay.verify import VerifyReport, verify
from support.server import Server

ADD = "*** Begin Patch\n*** Add File: {path}\n+{text}\n*** End Patch\n"


async def ask(server: Server, command: Command, channel: Channel = "mcp") -> dict[str, Any]:
    """Return the answer as a client sees it; a refusal too."""
    try:
        return (await server.handle(command, channel)).to_wire()
    except CodespaceError as error:
        return error.to_wire()


def addition(path: str = "new.txt", text: str = "new", *, key: str | None = None) -> ApplyPatch:
    """Return the request for a new file."""
    return ApplyPatch(workspace_id="demo", patch=ADD.format(path=path, text=text), operation_key=key)


def script(text: str, *, key: str | None = None) -> ExecCommand:
    """Return the request for a shell command."""
    return ExecCommand(workspace_id="demo", command=["sh", "-c", text], operation_key=key)


async def hold(server: Server, command: Command) -> str:
    """Have a request held, by the policy or on purpose; return its hold."""
    told = await ask(server, command)
    if told.get("code") == "APPROVAL_REQUIRED":
        return str(told["approval_id"])
    raise AssertionError(told)


async def create(server: Server, command: Command) -> dict[str, Any]:
    """Ask for a request to be held on purpose."""
    tool = {"ApplyPatch": "apply_patch", "ExecCommand": "exec_command", "RevertOperation": "operation_revert",
            "ResolveAction": "resolve"}
    request = CreateHold(tool=tool[type(command).__name__], arguments=command.model_dump(exclude_none=True))  # type: ignore[arg-type]  # one of the three
    return await ask(server, request)


async def grant(
    server: Server, approval_id: str, channel: Channel = "mcp", reason: str | None = None
) -> dict[str, Any]:
    """Grant it."""
    return await ask(server, ResolveHold(approval_id=approval_id, decision="grant", reason=reason), channel)


async def deny(server: Server, approval_id: str, reason: str | None = None) -> dict[str, Any]:
    """Deny it."""
    return await ask(server, ResolveHold(approval_id=approval_id, decision="deny", reason=reason))


async def resume(server: Server, approval_id: str) -> dict[str, Any]:
    """Resume it."""
    return await ask(server, ResumeOperation(approval_id=approval_id))


async def look(server: Server, approval_id: str) -> dict[str, Any]:
    """Ask how it stands."""
    return await ask(server, AskApproval(approval_id=approval_id))


async def held_and_granted(server: Server, command: Command) -> str:
    """Have a request held and granted; return its hold."""
    approval_id = await hold(server, command)
    assert (await grant(server, approval_id))["state"] == "granted"
    return approval_id


def read_hold(scratch: Path, approval_id: str) -> tuple[ApprovalState, bytes | None]:
    """Return what the log says of a hold, and its stored arguments if they are there."""
    with LogReader(scratch / "data" / "codespace.db", CATALOGUE) as reader:
        recorded = reader.read_stream(StreamId(approval_id))
        created = recorded[0].event
        assert isinstance(created, ApprovalCreated)
        return APPROVAL.fold_recorded(recorded), reader.read_body(StreamId(approval_id), created.arguments.digest)


def audit(scratch: Path) -> VerifyReport:
    """Return what an audit says of the whole log."""
    with LogReader(scratch / "data" / "codespace.db", CATALOGUE) as reader:
        return verify(reader)
