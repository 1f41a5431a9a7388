"""What is known of one command: running or ended, how, and how much it printed.

Answers from the log for ever; while it lives here, its handle adds what the log doesn't have yet.
Source: contract B1.9, A5; decision 22.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from pydantic import BaseModel, ConfigDict, Field

from codespace_es.aggregates.process import (
    EndCause,
    ProcessEndRequested,
    ProcessExited,
    ProcessSpawned,
    Termination,
)
from codespace_es.vocabulary.answer import Answer, Notice
from codespace_es.vocabulary.event import RecordedEvent

SIGNAL_NAMES = {
    1: "SIGHUP", 2: "SIGINT", 3: "SIGQUIT", 4: "SIGILL", 5: "SIGTRAP", 6: "SIGABRT", 7: "SIGBUS", 8: "SIGFPE",
    9: "SIGKILL", 10: "SIGUSR1", 11: "SIGSEGV", 12: "SIGUSR2", 13: "SIGPIPE", 14: "SIGALRM", 15: "SIGTERM",
    24: "SIGXCPU", 25: "SIGXFSZ", 26: "SIGVTALRM", 27: "SIGPROF", 29: "SIGIO", 31: "SIGSYS",
}
"""The standard signals of Linux that are told by name. Source: contract B5.4."""


class SignalReport(BaseModel):
    """The signal that a process died by."""

    model_config = ConfigDict(frozen=True)

    number: int
    name: str | None = None


class ProcessReport(Answer):
    """The truth about a command, as far as it can be known."""

    process_id: str = Field(description="The command.")
    state: str = Field(description="running or exited.")
    live: bool = Field(description="It runs in this server: it can be written to and ended.")
    termination: str | None = Field(default=None, description="exited, signaled, timeout, terminated or unknown.")
    exit_code: int | None = Field(default=None, description="Only with exited; anything but 0 isn't success.")
    signal: SignalReport | None = Field(default=None, description="Only with signaled.")
    output_total: int = Field(description="Bytes it has printed.")
    output_retained_from: int = Field(description="First byte that can still be read.")
    eof: bool = Field(description="It will print nothing more.")
    output_head: str | None = Field(default=None, description="The first of its output, when that is no longer kept.")
    workspace_id: str | None = Field(default=None, description="Where.")
    command: str | None = Field(default=None, description="The command line, cut at 200 characters.")
    owner: str | None = Field(default=None, description="Its server, if not this one, until its end is on record.")
    created_at: int | None = Field(default=None, description="Unix seconds.")
    finished_at: int | None = Field(default=None, description="Unix seconds.")
    duration_ms: int | None = Field(default=None, description="From start to end.")
    descendants_killed: int | None = Field(default=None, description="What it had left behind and was ended.")


@dataclass(frozen=True, slots=True)
class LiveSight:
    """What the handle of a living command tells that the log doesn't have yet."""

    leader_status: int | None
    """Once the leader has exited, maybe before the rest of its tree."""
    output_total: int
    retained_from: int
    end_cause: EndCause | None = None
    """Who wanted its end while it ran, maybe not on record yet."""


def project(
    recorded: Iterable[RecordedEvent], *, live: LiveSight | None = None, owner: str | None = None
) -> ProcessReport:
    """Return the report of one process' stream, which begins with `spawned`."""
    spawned, exited = None, None
    cause: EndCause | None = None
    process_id = ""
    at: dict[str, int] = {}
    for entry in recorded:
        match entry.event:
            case ProcessSpawned() as event:
                spawned, process_id = event, entry.stream_id
                at["created"] = int(entry.envelope.recorded_at.timestamp())
            case ProcessExited() as event:
                exited = event
                at["finished"] = int(entry.envelope.recorded_at.timestamp())
            case ProcessEndRequested() as event:
                cause = cause or event.cause
            case _:
                pass
    assert spawned is not None, "a process' stream begins with spawned"
    ending: tuple[Termination | None, int | None, int | None] = (None, None, None)
    if exited is not None:
        ending = (exited.termination, exited.exit_code, exited.signal)
    elif live is not None and live.leader_status is not None:
        ending = termination_of(live.leader_status, cause or live.end_cause)
    termination, exit_code, signal = ending
    return ProcessReport(
        process_id=process_id,
        state="running" if termination is None else "exited",
        live=live is not None and termination is None,
        termination=termination,
        exit_code=exit_code,
        signal=None if signal is None else SignalReport(number=signal, name=SIGNAL_NAMES.get(signal)),
        output_total=exited.output_bytes if exited else live.output_total if live else 0,
        output_retained_from=exited.retained_from if exited else live.retained_from if live else 0,
        eof=exited is not None,
        workspace_id=spawned.request.workspace_id,
        command=spawned.request.command_line,
        owner=owner,
        created_at=at["created"],
        finished_at=at.get("finished"),
        duration_ms=exited.duration_ms if exited else None,
        descendants_killed=exited.swept or None if exited else None,
    )


def left_by_dead_server(report: ProcessReport) -> ProcessReport:
    """Return the report of a command whose server, its `owner`, is dead, while no end is on record: as it will be."""
    notice = Notice(
        kind="owner_dead",
        message=f"Its server {report.owner} is dead, so how it ended is unknown and its output is lost. A server of "
        f"workspace {report.workspace_id!r} puts that on record.",
    )
    return report.model_copy(update={
        "state": "exited", "live": False, "termination": "unknown", "eof": True, "warnings": (notice,)
    })


def termination_of(
    wait_status: int | None, cause: EndCause | None
) -> tuple[Termination, int | None, int | None]:
    """Return termination, exit code and signal of a leader that ended with `wait_status` (as waitpid gives it).

    `cause` is who asked first for its end while it ran, however it took that. Source: contract B5.4.
    """
    if cause is not None:
        return ("timeout" if cause == "timeout" else "terminated"), None, None
    if wait_status is None:
        return "unknown", None, None
    signal = wait_status & 0x7F
    if signal:
        return "signaled", None, signal
    return "exited", (wait_status >> 8) & 0xFF, None
