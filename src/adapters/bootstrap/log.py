"""The log of these settings: its place, what it knows of events, and who appends to it."""

from collections.abc import Callable

from adapters.clock_and_ids import RandomIds, SystemClock
from adapters.log.event_log import StoredEventLog
from adapters.settings.load import Settings
from codespace_es.event_catalogue import CATALOGUE
from codespace_es.open_index import open_change
from codespace_es.ports.clock_and_ids import Clock
from codespace_es.ports.fault_points import FaultHook, no_faults
from codespace_es.vocabulary.identifiers import InstanceId


def open_event_log(settings: Settings) -> StoredEventLog:
    """Return the log alone, to be entered: for what mends a store. Nobody lives by it, so it can't be appended to."""
    return log_of(settings, InstanceId(f"inst-{RandomIds().uuid()}"), no_faults, SystemClock(), lambda _reason: None)


def log_of(
    settings: Settings, instance_id: InstanceId, faults: FaultHook, clock: Clock, on_failure: Callable[[str], None]
) -> StoredEventLog:
    """Return the log of an instance, to be entered."""
    return StoredEventLog(
        settings.log_place,
        catalogue=CATALOGUE,
        open_rule=open_change,
        instance_id=instance_id,
        clock=clock,
        ids=RandomIds(),
        faults=faults,
        on_failure=on_failure,
    )
