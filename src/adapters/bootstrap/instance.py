"""How an instance in this process tells the log of itself."""

from importlib.metadata import version
from typing import Literal

from adapters.locks.flock import lock_directory_of_user
from adapters.locks.instance_lock import FlockInstanceLocks
from adapters.machine import this_process
from adapters.settings.load import Settings
from codespace_es.aggregates.instance import InstanceStarted

Transport = Literal["stdio", "http", "cli"]


def software() -> str:
    """Return name and version of this product."""
    return f"codespace-es/{version('codespace-es')}"


def this_instance(settings: Settings, transport: Transport) -> InstanceStarted:
    """Return how an instance in this process begins."""
    process = this_process()
    return InstanceStarted(
        software=software(),
        machine_id=settings.machine_id,
        host=process.host,
        boot_id=process.boot_id,
        pid=process.pid,
        pid_namespace=process.pid_namespace,
        started_ticks=process.started_ticks,
        transport=transport,
        configuration=settings.digest,
        lock_directory=FlockInstanceLocks(lock_directory_of_user()).directory_id(),
    )
