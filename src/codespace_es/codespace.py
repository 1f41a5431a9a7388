"""The door: one table, command → command handler. Every transport enters here, and nothing else is public.

A command is a frozen model whose fields are also the tool's arguments; its handler is a story that decides, appends,
acts and appends. What a caller may not do raises `CodespaceError`; what else goes wrong becomes one, with an incident
id, here and nowhere else.
"""

from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from codespace_es.command_handlers.asking import AskApproval, ListHolds, ask_approval, list_holds
from codespace_es.command_handlers.calling_tools import CallCustomTool, call_custom_tool
from codespace_es.command_handlers.choosing import is_anything_waiting
from codespace_es.command_handlers.closing import OpenCalls, close, cut_off
from codespace_es.command_handlers.consulting import ConsultHuman, consult_human
from codespace_es.command_handlers.deciding import CreateHold, ResolveHold, create_hold, resolve_hold
from codespace_es.command_handlers.driving import (
    ResizeTerminal,
    TerminateProcess,
    WriteInput,
    resize_terminal,
    terminate_process,
    write_input,
)
from codespace_es.command_handlers.finishing import FinishWorkCommand, finish_work
from codespace_es.command_handlers.following import exec_and_follow
from codespace_es.command_handlers.hinting import add_pending, with_hints
from codespace_es.command_handlers.inbox import (
    CancelIntentCommand,
    EditIntentCommand,
    ListIntents,
    ListWorks,
    LookAtWork,
    QueueIntentCommand,
    ReleaseIntentCommand,
    ReorderIntentsCommand,
    StopWorkCommand,
    WriteIntent,
    cancel_intent,
    edit_intent,
    list_intents,
    list_works,
    look_at_work,
    queue_intent,
    release_intent,
    reorder_intents,
    stop_work,
    write_intent,
)
from codespace_es.command_handlers.matching import MatchCode, match_code
from codespace_es.command_handlers.observing import (
    AskProcess,
    ListProcesses,
    ReadProcess,
    ask_process,
    list_processes,
    read_process,
)
from codespace_es.command_handlers.patching import ApplyPatch, apply_patch
from codespace_es.command_handlers.previewing import AskPending, ListPending, ask_pending, list_pending
from codespace_es.command_handlers.reading import (
    DescribeWorkspace,
    FindFiles,
    ReadFile,
    SearchFiles,
    describe_workspace,
    find_files,
    read_file,
    search_files,
)
from codespace_es.command_handlers.reporting import ReportOperation, report_operation
from codespace_es.command_handlers.resolve_request import ResolveAction
from codespace_es.command_handlers.resolving import resolve_action
from codespace_es.command_handlers.resuming import ResumeOperation, resume_operation
from codespace_es.command_handlers.reverting import RevertOperation, RevertOperations, revert_operation
from codespace_es.command_handlers.rewriting import EditCode, preview_edit
from codespace_es.command_handlers.steering import (
    AskWork,
    ClaimNextCommand,
    CompleteIntentCommand,
    OpenWorkCommand,
    ask_work,
    claim_next,
    complete_intent,
    open_work,
)
from codespace_es.command_handlers.taking_over import TakeOverHost, take_over_host
from codespace_es.invocation import ExecCommand
from codespace_es.ports.log import InstanceClosedError, StoreUnavailableError, UnknownTopicError
from codespace_es.ports.world import World
from codespace_es.vocabulary.answer import Answer, Command
from codespace_es.vocabulary.errors import CodespaceError, ErrorCode
from codespace_es.vocabulary.event import Caller

Handler = Callable[[World, Any, Caller], Awaitable[Answer]]

HANDLERS: Mapping[type[Command], Handler] = {
    DescribeWorkspace: describe_workspace,
    ReadFile: read_file,
    FindFiles: find_files,
    SearchFiles: search_files,
    MatchCode: match_code,
    EditCode: preview_edit,
    ApplyPatch: apply_patch,
    ReportOperation: report_operation,
    RevertOperation: revert_operation,
    RevertOperations: revert_operation,
    CreateHold: create_hold,
    ResolveHold: resolve_hold,
    ResumeOperation: resume_operation,
    AskApproval: ask_approval,
    ListHolds: list_holds,
    ConsultHuman: consult_human,
    ResolveAction: resolve_action,
    ListPending: list_pending,
    AskPending: ask_pending,
    ExecCommand: exec_and_follow,
    AskProcess: ask_process,
    ListProcesses: list_processes,
    ReadProcess: read_process,
    WriteInput: write_input,
    ResizeTerminal: resize_terminal,
    TerminateProcess: terminate_process,
    OpenWorkCommand: open_work,
    AskWork: ask_work,
    ClaimNextCommand: claim_next,
    CompleteIntentCommand: complete_intent,
    FinishWorkCommand: finish_work,
    ListWorks: list_works,
    LookAtWork: look_at_work,
    ListIntents: list_intents,
    WriteIntent: write_intent,
    EditIntentCommand: edit_intent,
    QueueIntentCommand: queue_intent,
    CancelIntentCommand: cancel_intent,
    ReleaseIntentCommand: release_intent,
    ReorderIntentsCommand: reorder_intents,
    StopWorkCommand: stop_work,
    CallCustomTool: call_custom_tool,
    TakeOverHost: take_over_host,
}


class Codespace:
    """The execution layer, as its transports see it."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._calls = OpenCalls(lambda: world.live.is_closing)

    @property
    def world(self) -> World:
        """The ports and workspaces behind the door."""
        return self._world

    async def handle(self, command: Command, caller: Caller) -> Answer:
        """Return the result of `command`; cancelling the wait never cancels an effect that has begun.

        Raises:
            CodespaceError: any code of the contract; STORE_UNAVAILABLE if the log can't be read or written,
                SERVER_SHUTTING_DOWN once `close` was called.
        """
        scope = self._calls.begin()
        try:
            with scope:
                return await self._handle(command, caller)
            raise cut_off()
        finally:
            self._calls.end(scope)

    async def _handle(self, command: Command, caller: Caller) -> Answer:
        try:
            answer = await HANDLERS[type(command)](self._world, command, caller)
            return await with_hints(self._world, command, answer, caller)
        except CodespaceError as refusal:
            await add_pending(self._world, command, refusal, caller)
            raise
        except (StoreUnavailableError, UnknownTopicError, InstanceClosedError) as error:
            told = str(error).rstrip(".")
            raise CodespaceError(ErrorCode.STORE_UNAVAILABLE, f"The event log is unavailable: {told}.") from error

    async def has_pending(self) -> bool:
        """Return whether some preview waits in this server's workspaces; True where the log can't be asked."""
        try:
            return await is_anything_waiting(self._world)
        except (StoreUnavailableError, UnknownTopicError):
            return True

    async def tell_pending(self, named: Mapping[str, Any], refusal: CodespaceError, caller: Caller) -> None:
        """Have a refusal tell what is pending where `named`, the arguments of a call, belongs to."""
        await add_pending(self._world, named, refusal, caller)

    @contextmanager
    def until_closing(self) -> Iterator[None]:
        """Have a body that waits for a person be left as soon as this server ends."""
        scope = self._calls.begin_wait()
        try:
            with scope:
                yield
        finally:
            self._calls.end_wait(scope)

    async def close(self, caller: Caller) -> None:
        """End every command that lives here; return when every effect is over and every call has its answer."""
        await close(self._world, self._calls, caller)
