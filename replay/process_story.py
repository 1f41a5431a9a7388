"""A command as the log has it: how it is or ended, its arguments, and what is kept of its output; and the list of all.

Nothing here asks a process: what a living one prints is known to its server alone.
"""

import json
from collections.abc import Iterator

from pydantic import BaseModel, ConfigDict, Field

from codespace_es.aggregates.process import ProcessExited, ProcessNotStarted, ProcessSpawned
from codespace_es.projections.process_status import ProcessReport, project
from codespace_es.vocabulary.event import Body, RecordedEvent
from codespace_es.vocabulary.identifiers import StreamId
from replay.source import LogSource, first_of


class ProcessStory(BaseModel):
    """One command's whole story, beside its events."""

    model_config = ConfigDict(frozen=True)

    report: ProcessReport | None = Field(default=None, description="How it is or ended; absent: never started.")
    argv: tuple[str, ...] | None = Field(default=None, description="Program and arguments; absent if pruned.")
    refusal: str | None = Field(default=None, description="Why nothing was started.")
    output_head: str | None = Field(default=None, description="The first of its output, if the tail begins later.")
    output_tail: str | None = Field(default=None, description="The last of its output; absent if nothing is kept.")
    note: str | None = Field(default=None, description="What of its output isn't here, and why.")


def tell_process(source: LogSource, stream_id: StreamId) -> ProcessStory:
    """Return the story of the command whose stream is there."""
    began = first_of(source, stream_id)
    assert began is not None, "somebody has seen it"
    first = began.event
    assert isinstance(first, ProcessSpawned | ProcessNotStarted), "a process' stream begins with one of these"
    argv = source.read_body(stream_id, first.request.argv.digest)
    told = {"argv": None if argv is None else tuple(json.loads(argv))}
    if isinstance(first, ProcessNotStarted):
        return ProcessStory.model_validate({**told, "refusal": first.fault.message})
    report = _report_of(source, began)
    ends = (each.event for each in source.walk_stream(stream_id) if isinstance(each.event, ProcessExited))
    last = next(ends, None)
    if last is None:
        note = "It runs, as far as the log knows; what it prints is kept by its server until it ends."
        return ProcessStory.model_validate({**told, "report": report, "note": note})
    head, tail = (_text(source, stream_id, body) for body in (last.output_head, last.output_tail))
    return ProcessStory.model_validate(
        {**told, "report": report, "output_head": head, "output_tail": tail, "note": _gap(last, tail)}
    )


def _report_of(source: LogSource, began: RecordedEvent) -> ProcessReport:
    report = project(source.walk_stream(began.stream_id), owner=began.envelope.instance_id)
    return report.model_copy(update={"owner": None}) if report.eof else report


def _text(source: LogSource, stream_id: StreamId, body: Body | None) -> str | None:
    content = None if body is None else source.read_body(stream_id, body.digest)
    return None if content is None else content.decode("utf-8", "replace")


def _gap(exited: ProcessExited, tail: str | None) -> str | None:
    """Return what of the output isn't there."""
    if exited.output_tail is not None and tail is None:
        return "What was kept of its output was removed."
    if exited.termination == "unknown" and exited.output_tail is None:
        return "Its output is lost with the server that ran it."
    if exited.retained_from > 0:
        return f"Of {exited.output_bytes:,} bytes of output, those from {exited.retained_from:,} on are kept."
    return None


def list_processes(source: LogSource, *, is_all: bool) -> Iterator[ProcessReport]:
    """Yield the commands that the log calls running, oldest first; `is_all`: also those that have ended."""
    if is_all:
        streams = (each.stream_id for each in source.read_log() if isinstance(each.event, ProcessSpawned))
    else:
        streams = (item.stream_id for item in source.open_items() if item.kind == "process")
    for stream_id in streams:
        began = first_of(source, stream_id)
        if began is not None:
            yield _report_of(source, began)
