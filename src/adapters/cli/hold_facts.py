"""What is told of a hold, name by name: the same in `show` and in `approvals show`."""

from collections.abc import Iterator
from datetime import UTC, datetime

from adapters.cli.output import as_shell_words
from codespace_es.projections.approval_status import ApprovalReport


def facts_of_hold(report: ApprovalReport) -> Iterator[tuple[str, object]]:
    """Yield who asked for what, who decided and how, and what came of it; what isn't known is left out."""
    error = report.error
    facts: dict[str, object] = {
        "state": report.state,
        "tool": report.tool,
        "workspace": report.workspace_id,
        "what": report.title,
        "command": None if report.command is None else as_shell_words(report.command),
        "asked": moment(report.created_at),
        "asked by": report.requested_by,
        "key": report.operation_key,
        "expires": None if report.expires_at is None else moment(report.expires_at),
        "decided": None if report.decided_at is None else moment(report.decided_at),
        "decided by": report.decided_by,
        "reason": report.reason,
        "led to": report.effect_id,
        "error": None if error is None else f"{error['code']}: {error['message']}",
    }
    yield from ((name, value) for name, value in facts.items() if value is not None)


def moment(seconds: int) -> str:
    """Return a time in Unix seconds as people read it."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
