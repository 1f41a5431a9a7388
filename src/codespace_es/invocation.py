"""What a request to run a command asks for: what it may be, what goes on record of it, what the runner is told.

Source: decisions 17 to 23; contract A5, B5.
"""

import json
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from pydantic import Field

from codespace_es.aggregates.process import CommandRequest
from codespace_es.ports.log import NewBody
from codespace_es.ports.runner import RunnerCommand
from codespace_es.vocabulary import limits
from codespace_es.vocabulary.answer import Command
from codespace_es.vocabulary.errors import CodespaceError, ErrorCode
from codespace_es.vocabulary.event import Digest
from codespace_es.vocabulary.fingerprint import fingerprint
from codespace_es.vocabulary.identifiers import ApprovalId, ProcessId, StreamId, WorkId
from codespace_es.vocabulary.workspace import Workspace


class ExecCommand(Command):
    """Ask for a command to be run."""

    workspace_id: str = Field(description="Workspace to run in; its root is the working directory.")
    command: list[str] = Field(description="The program and its arguments; no shell unless you name one.")
    tty: bool = Field(default=False, description="Give it a terminal of 24x80.")
    stdin: Literal["pipe", "null"] | None = Field(default=None, description="Where its input comes from.")
    timeout_ms: int | None = Field(default=None, ge=1, description="Shortens the operator's time limit.")
    wait_ms: int = Field(
        default=0, ge=0, le=limits.READ_OUTPUT_WAIT_MS_MAX,
        description="Wait this long for its end, and answer with its output and exit code.",
    )
    operation_key: str | None = Field(
        default=None, description="Your idempotency key: a repeat returns the same process_id and runs nothing."
    )
    work_id: str | None = Field(default=None, description="The work this belongs to.")


def title_of(argv: list[str]) -> str:
    """Return what is told of a held command for ever: its arguments may be secret, and go when the hold ends."""
    program = shlex.quote(argv[0])[: limits.LABEL_CHARACTERS_MAX // 2]
    count = len(argv) - 1
    return f"Run {program}" + (f" with {count} argument{'' if count == 1 else 's'}" if count else "")


def require_runnable(argv: list[str]) -> None:
    """Refuse what can't be an argument list at all. Raises INVALID_COMMAND."""
    if not argv or not argv[0]:
        raise CodespaceError(
            ErrorCode.INVALID_COMMAND, "command is empty: the first element names the program.",
            detail={"field": "command"},
        )
    for number, argument in enumerate(argv):
        try:
            argument.encode()
        except UnicodeEncodeError as error:
            raise CodespaceError(
                ErrorCode.INVALID_COMMAND, f"command[{number}] isn't valid Unicode.", detail={"field": "command"}
            ) from error
        if "\0" in argument:
            raise CodespaceError(
                ErrorCode.INVALID_COMMAND, f"command[{number}] has a NUL in it.", detail={"field": "command"}
            )


@dataclass(frozen=True, slots=True)
class Invocation:
    """A command in its workspace, with all that it is given."""

    workspace: Workspace
    command: ExecCommand
    base_environment: Mapping[str, str]
    """What every command of this server gets; see `World.child_environment`."""
    private_paths: tuple[str, ...]
    """Directories that it must not see."""
    resumed: ApprovalId | None
    """The hold that it was released from."""

    def fingerprint(self) -> Digest:
        """Return what tells a repeat with the same key from another request."""
        return fingerprint(
            workspace=self.workspace.key, command=self.command.command, tty=self.command.tty,
            stdin=self.command.stdin, timeout_ms=self.command.timeout_ms,
        )

    def argv_body(self, process_id: ProcessId) -> NewBody:
        """Return its arguments as they are stored: apart from the event, for they may be secret."""
        return NewBody(StreamId(process_id), "request", json.dumps(self.command.command).encode())

    def _timeout_ms(self) -> int:
        """Return the operator's limit, or the caller's shorter one; 0: none."""
        operator_ms = self.workspace.process_timeout_seconds * 1000
        asked_ms = self.command.timeout_ms
        if asked_ms is None:
            return operator_ms
        return min(asked_ms, operator_ms) if operator_ms else asked_ms

    def _environment(self) -> dict[str, str]:
        """Return all that the command gets, but for `HOME`, which the runner gives: private where it confines."""
        terminal = {"TERM": "xterm"} if self.command.tty else {}
        return {**self.base_environment, **terminal, **self.workspace.env}

    def request(self, process_id: ProcessId) -> CommandRequest:
        """Return what goes on record of it; what confines it is known once it is forked."""
        return CommandRequest(
            workspace_key=self.workspace.key,
            workspace_id=self.workspace.workspace_id,
            argv=self.argv_body(process_id).body,
            command_line=shlex.join(self.command.command)[: limits.LABEL_CHARACTERS_MAX],
            tty=self.command.tty,
            stdin=self.command.stdin or self.workspace.stdin_default,
            timeout_ms=self._timeout_ms(),
            environment_names=tuple(sorted(self._environment())),
            sandbox="none",
            network=self.workspace.network,
            is_network_enforced=False,
            fingerprint=self.fingerprint(),
            operation_key=self.command.operation_key,
            work_id=WorkId(self.command.work_id) if self.command.work_id else None,
            approval_id=self.resumed,
        )

    def runner_command(self, process_id: ProcessId) -> RunnerCommand:
        """Return what the runner is told."""
        return RunnerCommand(
            process_id=process_id,
            argv=tuple(self.command.command),
            root=self.workspace.root,
            environment=self._environment(),
            tty=self.command.tty,
            stdin=self.command.stdin or self.workspace.stdin_default,
            rows=limits.TERMINAL_ROWS,
            columns=limits.TERMINAL_COLUMNS,
            is_network_enabled=self.workspace.network == "enabled",
            sandbox=self.workspace.sandbox,
            hidden_paths=self.private_paths,
            read_only_paths=(".git",),
            output_retention_bytes=self.workspace.output_retention_bytes,
            head_bytes=limits.OUTPUT_HEAD_BYTES,
        )
