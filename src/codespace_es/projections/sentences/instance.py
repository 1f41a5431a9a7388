"""Servers, from start to end."""

from codespace_es.aggregates.instance import (
    InstanceCallRefused,
    InstanceRecovered,
    InstanceStarted,
    InstanceStopped,
    InstanceTakenOver,
)
from codespace_es.projections.sentences.words import Sentences, count


def _instance_started(event: InstanceStarted) -> str:
    return f"{event.software} started on {event.host} as process {event.pid}, serving {event.transport}."


def _instance_stopped(event: InstanceStopped) -> str:
    reasons = {
        "eof": "its client closed the input",
        "signal": "it was told to end",
        "output_closed": "nobody read its output any more",
        "done": "its work was done",
        "fault": "of a fault",
    }
    return f"The server stopped because {reasons[event.reason]}."


def _instance_call_refused(event: InstanceCallRefused) -> str:
    place = f" in workspace {event.workspace_id}" if event.workspace_id is not None else ""
    return f"A call of {event.tool}{place} was refused with {event.code}."


def _instance_recovered(event: InstanceRecovered) -> str:
    closed = event.operations_closed + event.processes_closed + event.resolves_closed
    if not closed:
        return "Another server found this one dead, with nothing left to close."
    return f"Another server found this one dead and closed {count(closed, 'thing')} that it had left open."


def _instance_taken_over(event: InstanceTakenOver) -> str:
    return f"The operator declared its host lost: it can't append any more. {event.reason}".rstrip()


INSTANCE_SENTENCES: Sentences = {
    InstanceStarted: _instance_started,
    InstanceStopped: _instance_stopped,
    InstanceCallRefused: _instance_call_refused,
    InstanceRecovered: _instance_recovered,
    InstanceTakenOver: _instance_taken_over,
}
