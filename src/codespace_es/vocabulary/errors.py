"""The closed list of error codes, what is fixed about each, and the one exception that carries them.

Codes are only ever added: never renamed, reused or deleted. A message is one sentence with the offending value in it;
what the reader should do next is the code's `remedy`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, Self

from codespace_es.vocabulary.limits import ERROR_TEXT_CHARACTERS_MAX

if TYPE_CHECKING:
    from pydantic import BaseModel

Retry = Literal["never", "after_change", "now"]
"""May the same request succeed later: never, after something has changed, or at once."""


class ErrorCode(StrEnum):
    """Every code that a tool, the command line or an HTTP answer can carry."""

    UNAUTHORIZED = "UNAUTHORIZED"
    WORKSPACE_NOT_FOUND = "WORKSPACE_NOT_FOUND"
    WORKSPACE_BUSY = "WORKSPACE_BUSY"
    RESOURCE_QUEUE_FULL = "RESOURCE_QUEUE_FULL"
    RESOURCE_POLICY_UNSUPPORTED = "RESOURCE_POLICY_UNSUPPORTED"
    INVALID_ARGUMENT = "INVALID_ARGUMENT"
    INVALID_PATCH = "INVALID_PATCH"
    INVALID_COMMAND = "INVALID_COMMAND"
    PROCESS_SPAWN_FAILED = "PROCESS_SPAWN_FAILED"
    PATH_ESCAPE = "PATH_ESCAPE"
    PATH_PROTECTED = "PATH_PROTECTED"
    FILE_NOT_FOUND = "FILE_NOT_FOUND"
    PATH_NOT_DIRECTORY = "PATH_NOT_DIRECTORY"
    FILE_OPERATION_FAILED = "FILE_OPERATION_FAILED"
    SYMLINK_REJECTED = "SYMLINK_REJECTED"
    SPECIAL_FILE_REJECTED = "SPECIAL_FILE_REJECTED"
    ADD_FILE_EXISTS = "ADD_FILE_EXISTS"
    MOVE_DESTINATION_EXISTS = "MOVE_DESTINATION_EXISTS"
    VERSION_CONFLICT = "VERSION_CONFLICT"
    REVERT_CONFLICT = "REVERT_CONFLICT"
    OPERATION_KEY_CONFLICT = "OPERATION_KEY_CONFLICT"
    OPERATION_NOT_FOUND = "OPERATION_NOT_FOUND"
    PROCESS_NOT_FOUND = "PROCESS_NOT_FOUND"
    PROCESS_NOT_TTY = "PROCESS_NOT_TTY"
    PROCESS_NOT_RUNNING = "PROCESS_NOT_RUNNING"
    STDIN_CLOSED = "STDIN_CLOSED"
    OUTPUT_LIMIT = "OUTPUT_LIMIT"
    TIMEOUT = "TIMEOUT"
    WORK_NOT_FOUND = "WORK_NOT_FOUND"
    WORK_CLOSED = "WORK_CLOSED"
    INTENT_NOT_FOUND = "INTENT_NOT_FOUND"
    INTENT_ALREADY_CLAIMED = "INTENT_ALREADY_CLAIMED"
    INTENT_NOT_EDITABLE = "INTENT_NOT_EDITABLE"
    INTENT_REVISION_CONFLICT = "INTENT_REVISION_CONFLICT"
    QUEUE_NOT_EMPTY = "QUEUE_NOT_EMPTY"
    APPROVAL_REQUIRED = "APPROVAL_REQUIRED"
    APPROVAL_NOT_FOUND = "APPROVAL_NOT_FOUND"
    APPROVAL_CONFLICT = "APPROVAL_CONFLICT"
    APPROVAL_AMBIGUOUS = "APPROVAL_AMBIGUOUS"
    NO_PENDING_ACTION = "NO_PENDING_ACTION"
    PENDING_ACTION_MISMATCH = "PENDING_ACTION_MISMATCH"
    PENDING_ACTION_UNRESOLVED = "PENDING_ACTION_UNRESOLVED"
    PENDING_STORE_UNAVAILABLE = "PENDING_STORE_UNAVAILABLE"
    STALE_PREVIEW = "STALE_PREVIEW"
    APPLY_FAILED = "APPLY_FAILED"
    UNSUPPORTED_LANGUAGE = "UNSUPPORTED_LANGUAGE"
    TOOL_FAILED = "TOOL_FAILED"
    STORE_UNAVAILABLE = "STORE_UNAVAILABLE"
    SERVER_SHUTTING_DOWN = "SERVER_SHUTTING_DOWN"
    INTERNAL = "INTERNAL"


@dataclass(frozen=True, slots=True)
class ErrorSpec:
    """What is fixed about a code."""

    retry: Retry
    http_status: int
    remedy: str
    """One sentence: the reader's next move."""


def _spec(retry: Retry, http_status: int, remedy: str) -> ErrorSpec:
    return ErrorSpec(retry, http_status, remedy)


_E = ErrorCode
ERROR_SPECS: Mapping[ErrorCode, ErrorSpec] = MappingProxyType({
    _E.UNAUTHORIZED: _spec("never", 403, "Ask the operator; no argument of yours unlocks it."),
    _E.WORKSPACE_NOT_FOUND: _spec("never", 404, "Use a workspace_id that workspace_info or the operator names."),
    _E.WORKSPACE_BUSY: _spec("after_change", 409, "Wait for the running command to end, or end it, then call again."),
    _E.RESOURCE_QUEUE_FULL: _spec("after_change", 429, "Wait until some of the queued calls have been answered."),
    _E.RESOURCE_POLICY_UNSUPPORTED: _spec("never", 400, "Ask the operator to change the workspace's resource policy."),
    _E.INVALID_ARGUMENT: _spec("never", 400, "Correct the named argument and call again."),
    _E.INVALID_PATCH: _spec("never", 400, "Read the file again, mend the named hunk and send a new patch."),
    _E.INVALID_COMMAND: _spec("never", 400, "Pass the command as a non-empty list of strings."),
    _E.PROCESS_SPAWN_FAILED: _spec("after_change", 400, "Nothing was started: correct the command, use a new key."),
    _E.PATH_ESCAPE: _spec("never", 400, "Use a path relative to the workspace root that stays inside it."),
    _E.PATH_PROTECTED: _spec("never", 403, "This path is read-only here: choose another, or ask the operator."),
    _E.FILE_NOT_FOUND: _spec("after_change", 404, "Use find to see which files exist."),
    _E.PATH_NOT_DIRECTORY: _spec("after_change", 400, "A parent of this path is a file: choose another path."),
    _E.FILE_OPERATION_FAILED: _spec("after_change", 500, "See the message for the system's reason."),
    _E.SYMLINK_REJECTED: _spec("never", 400, "Name the real file: symbolic links are not followed."),
    _E.SPECIAL_FILE_REJECTED: _spec("never", 400, "Only regular files can be read or changed."),
    _E.ADD_FILE_EXISTS: _spec("after_change", 409, "Update the file instead of adding it."),
    _E.MOVE_DESTINATION_EXISTS: _spec("after_change", 409, "Choose another destination, or delete it first."),
    _E.VERSION_CONFLICT: _spec("after_change", 409, "Read the file again and make the patch for what it says now."),
    _E.REVERT_CONFLICT: _spec("after_change", 409, "Undo the later change first, or write a new patch."),
    _E.OPERATION_KEY_CONFLICT: _spec("never", 409, "Use a new operation_key for a new request."),
    _E.OPERATION_NOT_FOUND: _spec(
        "now", 404, "Ask process_status if a process is named; else ask again: a call may still be in flight."
    ),
    _E.PROCESS_NOT_FOUND: _spec("never", 404, "Use a process_id that exec_command returned."),
    _E.PROCESS_NOT_TTY: _spec("never", 400, "Start the command with tty true to resize it."),
    _E.PROCESS_NOT_RUNNING: _spec("never", 409, "The process has ended: read its output and status."),
    _E.STDIN_CLOSED: _spec("never", 409, "The process no longer reads its input."),
    _E.OUTPUT_LIMIT: _spec("never", 400, "Use a limit within the stated range."),
    _E.TIMEOUT: _spec("after_change", 504, "The time limit was reached: see the status and the output so far."),
    _E.WORK_NOT_FOUND: _spec("never", 404, "Use a work_id that work_open returned."),
    _E.WORK_CLOSED: _spec("never", 409, "Open a new work."),
    _E.INTENT_NOT_FOUND: _spec("never", 404, "Use an intent_id of this work."),
    _E.INTENT_ALREADY_CLAIMED: _spec("never", 409, "It is being worked on: write a new intent."),
    _E.INTENT_NOT_EDITABLE: _spec("never", 409, "Its state doesn't allow this any more."),
    _E.INTENT_REVISION_CONFLICT: _spec("after_change", 409, "Read it again and repeat with its present revision."),
    _E.QUEUE_NOT_EMPTY: _spec("after_change", 409, "Claim or cancel what is queued first."),
    _E.APPROVAL_REQUIRED: _spec("after_change", 409, "Have the approval granted, then call operation_resume."),
    _E.APPROVAL_NOT_FOUND: _spec("never", 404, "Use an approval_id that was answered."),
    _E.APPROVAL_CONFLICT: _spec("after_change", 409, "Ask approval_status: only a pending one can still be decided."),
    _E.APPROVAL_AMBIGUOUS: _spec("never", 409, "It may have happened: look before you ask again."),
    _E.NO_PENDING_ACTION: _spec("never", 409, "Nothing waits: go on."),
    _E.PENDING_ACTION_MISMATCH: _spec("after_change", 409, "Resolve the newest action first, by its id."),
    _E.PENDING_ACTION_UNRESOLVED: _spec("after_change", 409, "Call resolve for the pending action first."),
    _E.PENDING_STORE_UNAVAILABLE: _spec("never", 500, "This runtime can't stage actions."),
    _E.STALE_PREVIEW: _spec("after_change", 409, "The files have changed: make the preview again."),
    _E.APPLY_FAILED: _spec("after_change", 409, "See outcome: returned waits again under its id, failed is over."),
    _E.UNSUPPORTED_LANGUAGE: _spec("never", 400, "Use one of the named languages."),
    _E.TOOL_FAILED: _spec("after_change", 500, "See the message; the tool's own words are in the server's log."),
    _E.STORE_UNAVAILABLE: _spec("after_change", 503, "When the event log works again, ask operation_status first."),
    _E.SERVER_SHUTTING_DOWN: _spec(
        "after_change", 503, "Call again when the server runs again: with the same operation_key nothing is done twice."
    ),
    _E.INTERNAL: _spec("after_change", 500, "Give the operator the incident id; details are in the server's log."),
})
"""One entry a code, exactly. Source: contract B9, A1, and decision 35 for `retry`."""


class CodespaceError(Exception):
    """A refusal or failure that a caller is told: a code, one sentence, and JSON-able detail.

    Both are stored with the event that remembers the refusal, so every text in them is cut at a bound.
    """

    def __init__(self, code: ErrorCode, message: str, *, detail: Mapping[str, Any] | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = _cut(message)
        self.detail = {
            key: _cut(value) if isinstance(value, str) else value for key, value in (detail or {}).items()
        }
        self.pending_actions: BaseModel | None = None
        """What is pending where the call belongs to, as every answer tells it; of this call only, never stored."""

    def __str__(self) -> str:
        return f"{self.code}: {self.message}"

    def __reduce__(self) -> tuple[Any, ...]:
        """Survive a process boundary: an exception with keyword arguments doesn't pickle by itself."""
        return (_rebuild, (self.code, self.message, self.detail))

    def with_detail(self, **more: Any) -> Self:
        """Return the same error knowing more, such as `operation_id` or `path`."""
        return type(self)(self.code, self.message, detail={**self.detail, **more})

    def to_wire(self) -> dict[str, Any]:
        """Return the error body: `{code, message, retry, remedy}`, ids at the top level, the rest in `detail`."""
        spec = ERROR_SPECS[self.code]
        ids = {key: self.detail[key] for key in _TOP_LEVEL_IDS if self.detail.get(key) is not None}
        rest = {key: value for key, value in self.detail.items() if key not in _TOP_LEVEL_IDS}
        wire: dict[str, Any] = {
            "code": self.code.value, "message": self.message, "retry": spec.retry, "remedy": spec.remedy, **ids,
        }
        if rest:
            wire["detail"] = rest
        if self.pending_actions is not None:
            wire["pending_actions"] = self.pending_actions.model_dump(mode="json", exclude_none=True)
        return wire


def _cut(text: str) -> str:
    return text if len(text) <= ERROR_TEXT_CHARACTERS_MAX else f"{text[: ERROR_TEXT_CHARACTERS_MAX - 1]}…"


_TOP_LEVEL_IDS = ("operation_id", "approval_id", "process_id")


def _rebuild(code: ErrorCode, message: str, detail: dict[str, Any]) -> CodespaceError:
    return CodespaceError(code, message, detail=detail)
