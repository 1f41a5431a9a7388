"""Commands: started, fed, ended."""

from codespace_es.aggregates.process import (
    ProcessEndRequested,
    ProcessExited,
    ProcessInputSent,
    ProcessNotStarted,
    ProcessResized,
    ProcessSpawned,
)
from codespace_es.projections.process_status import SIGNAL_NAMES
from codespace_es.projections.sentences.words import Sentences, count


def _process_spawned(event: ProcessSpawned) -> str:
    request = event.request
    place = "with a terminal " if request.tty else ""
    confined = "unconfined" if request.sandbox == "none" else f"confined by {request.sandbox}"
    return (
        f"`{request.command_line}` is about to run {place}as process {event.pid} in workspace {request.workspace_id}, "
        f"{confined}."
    )


def _process_not_started(event: ProcessNotStarted) -> str:
    return f"`{event.request.command_line}` couldn't be started: {event.fault.message.rstrip('.')}."


def _process_input_sent(event: ProcessInputSent) -> str:
    end = ", and its input was closed" if event.is_eof else ""
    return f"{count(event.size_bytes, 'byte')} went to its input{end}."


def _process_resized(event: ProcessResized) -> str:
    return f"Its terminal has {event.rows} rows and {event.columns} columns now."


def _process_end_requested(event: ProcessEndRequested) -> str:
    who = {
        "caller": "A caller wants it to end",
        "timeout": "Its time limit is over",
        "stop": "The work was stopped, so it has to end",
        "shutdown": "Its server ends, so it has to end",
    }[event.cause]
    name = SIGNAL_NAMES.get(event.signal, str(event.signal))
    return f"{who}: {name} now, and SIGKILL after {event.grace_ms:,} ms."


def _process_exited(event: ProcessExited) -> str:
    name = SIGNAL_NAMES.get(event.signal, str(event.signal)) if event.signal is not None else ""
    how = {
        "exited": f"It exited with code {event.exit_code}",
        "signaled": f"It was ended by {name}",
        "timeout": "It was ended by its time limit",
        "terminated": "It was ended on request",
        "unknown": "It is gone; how it ended can't be known",
    }[event.termination]
    swept = f"; {count(event.swept, 'descendant')} had to be ended" if event.swept else ""
    return f"{how}, after {count(event.output_bytes, 'byte')} of output{swept}."


PROCESS_SENTENCES: Sentences = {
    ProcessSpawned: _process_spawned,
    ProcessNotStarted: _process_not_started,
    ProcessInputSent: _process_input_sent,
    ProcessResized: _process_resized,
    ProcessEndRequested: _process_end_requested,
    ProcessExited: _process_exited,
}
