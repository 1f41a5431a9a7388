"""Whether a server lives, asked of its lock by a command that only reads. Nothing is written to the log for that."""

from adapters.locks.flock import lock_directory_of_user
from adapters.locks.instance_lock import FlockInstanceLocks
from adapters.log.reader import LogReader
from adapters.settings.load import Settings
from codespace_es.aggregates.instance import INSTANCE, Ended, Running
from codespace_es.projections.process_status import ProcessReport, left_by_dead_server
from codespace_es.vocabulary.identifiers import InstanceId, StreamId
from replay.process_story import ProcessStory


def has_lock(instance_id: InstanceId) -> bool:
    """Return whether somebody holds the instance's lock in this user's directory."""
    held = FlockInstanceLocks(lock_directory_of_user()).try_take(instance_id)
    if held is None:
        return True
    held.release()
    return False


def is_dead(settings: Settings, source: LogReader, instance_id: str) -> bool:
    """Return whether there is proof that a server is dead: its end is on record, or its lock, which is kept here, free.

    One of another host or user may live, for all that can be known here.
    """
    state = INSTANCE.fold_recorded(source.read_stream(StreamId(instance_id)))
    if not isinstance(state, Running):
        return isinstance(state, Ended)
    locks = FlockInstanceLocks(lock_directory_of_user())
    is_here = state.started.machine_id == settings.machine_id
    is_here = is_here and state.started.lock_directory in (None, locks.directory_id())
    return is_here and not has_lock(InstanceId(instance_id))


def as_it_is(settings: Settings, source: LogReader, report: ProcessReport) -> ProcessReport:
    """Return the log's report of a command, told as ended where its server is dead and nobody has recorded that."""
    is_left = report.termination is None and report.owner is not None and is_dead(settings, source, report.owner)
    return left_by_dead_server(report) if is_left else report


def story_as_it_is(settings: Settings, source: LogReader, process: ProcessStory) -> ProcessStory:
    """Return the log's story of a command with its report as it is, and why that isn't the log's."""
    if process.report is None or (report := as_it_is(settings, source, process.report)) is process.report:
        return process
    return process.model_copy(update={"report": report, "note": report.warnings[0].message})
