"""The hosts that share a log: those with servers that may still append, or with something left open."""

from collections.abc import Sequence
from dataclasses import dataclass

from adapters.log.reader import LogReader
from codespace_es.aggregates.instance import InstanceStarted
from codespace_es.ports.log import OpenItem
from codespace_es.vocabulary.identifiers import InstanceId, StreamId


@dataclass(frozen=True, slots=True)
class Host:
    """One machine, as the log knows it."""

    machine_id: str
    name: str
    """Its host name, when its newest server began."""
    instances: tuple[InstanceId, ...]
    """Servers of it that have something open: themselves, or what they began."""
    open_count: int
    """Patches and commands that they left open or are at now."""


def hosts_of(source: LogReader) -> Sequence[Host]:
    """Return every host of which something is open, by name. Cost: what is open, not the log."""
    items: dict[InstanceId, list[OpenItem]] = {}
    for item in source.open_items():
        if item.kind in ("instance", "operation", "process"):
            items.setdefault(item.instance_id, []).append(item)
    started: dict[str, list[tuple[InstanceId, InstanceStarted]]] = {}
    for instance_id in items:
        recorded = source.read_stream(StreamId(instance_id))
        if recorded and isinstance(began := recorded[0].event, InstanceStarted):
            started.setdefault(began.machine_id, []).append((instance_id, began))
    hosts = [
        Host(machine_id, servers[-1][1].host, tuple(instance_id for instance_id, _ in servers),
             sum(item.kind != "instance" for instance_id, _ in servers for item in items[instance_id]))
        for machine_id, servers in started.items()
    ]
    return sorted(hosts, key=lambda host: (host.name, host.machine_id))
