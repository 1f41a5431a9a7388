"""`store copy`: the log moved from a file to PostgreSQL, or back, with its chain."""

from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import click

from adapters.cli.options import as_json, settings_of_log
from adapters.cli.output import print_json, print_pairs
from adapters.cli.reading import open_log
from adapters.clock_and_ids import RandomIds, SystemClock
from adapters.locks.flock import lock_directory_of_user
from adapters.locks.instance_lock import FlockInstanceLocks
from adapters.log.copying import CopyRefusedError, copy_log
from adapters.log.places import LogPlace, open_database
from adapters.log.reader import LogReader
from adapters.log.rows import encode_envelope, encode_event
from adapters.log.submission import NewRow
from adapters.settings.load import Settings
from adapters.settings.postgres_address import is_postgres, postgres_address
from adapters.settings.problem import StartupError
from codespace_es.aggregates.instance import InstanceStarted, InstanceStopped
from codespace_es.aggregates.store import STORE, Created, RecordCopy, StoreCopied
from codespace_es.vocabulary.event import Caller, Event
from codespace_es.vocabulary.identifiers import STORE_STREAM, AppendId, InstanceId, RequestId

_LOCK_SECONDS = 30.0


@click.command()
@click.argument("target", metavar="TARGET")
@as_json
@settings_of_log
def copy(settings: Settings, *, target: str, is_json: bool) -> int:
    """Copy the event log to another place, chain and all.

    TARGET is a file that isn't there, or a PostgreSQL without a log (postgresql://USER@HOST:PORT/DATABASE; its password
    from PGPASSWORD or ~/.pgpass). Stop every server first. Events keep positions, bytes and hashes, contents and what
    is open come along, and `store.copied` says where the log came from. The old log stays as it is: don't serve both.
    Exit codes: 0 copied; 1 refused, nothing was written.
    """
    place = _place(target)
    with open_log(settings) as source:
        _require_quiet(settings, source)
        last = _last(settings, source)
        is_new = isinstance(place, Path) and not place.exists()
        try:
            head = _copy(source, place, last)
        except CopyRefusedError as error:
            if is_new:
                _remove(place)
            click.echo(f"codespace-es: Nothing was copied: {error}.", err=True)
            return 1
    told = {"from": str(settings.log_place), "to": str(place), "head": head}
    if is_json:
        print_json(told)
    else:
        print_pairs([(name, str(value)) for name, value in told.items()])
    return 0


def _place(target: str) -> LogPlace:
    if not is_postgres(target):
        return Path(target).expanduser().absolute()
    address = postgres_address(target, origin="TARGET")
    parts = urlsplit(target)
    if parts.password is not None or "password" in parse_qs(parts.query):
        raise StartupError("A password on a command line can be read by others: put it in ~/.pgpass or PGPASSWORD.")
    return address


def _require_quiet(settings: Settings, source: LogReader) -> None:
    """Pass if no server can be writing. Raises StartupError."""
    locks = FlockInstanceLocks(lock_directory_of_user())
    for item in source.open_items(kind="instance"):
        recorded = source.read_stream(item.stream_id)
        started = recorded[0].event if recorded else None
        if isinstance(started, InstanceStarted) and started.machine_id != settings.machine_id:
            raise StartupError(
                f"Server {item.instance_id} of host {started.host} may be running: stop it, or take that host over "
                "(codespace-es hosts).")
        held = locks.try_take(item.instance_id)
        if held is None:
            raise StartupError(f"Server {item.instance_id} is running: stop it first.")
        held.release()


def _last(settings: Settings, source: LogReader) -> list[NewRow]:
    """Return the events that end the copy: where it came from, said by an instance that does nothing else."""
    from adapters.bootstrap.instance import this_instance

    recorded = source.read_stream(STORE_STREAM)
    store = STORE.fold_recorded(recorded)
    if not isinstance(store, Created):
        raise StartupError("There is nothing to copy: no server has written this log yet.")
    ids = RandomIds()
    position, chained = source.head()
    instance_id = InstanceId(f"inst-{ids.uuid()}")
    copied = StoreCopied(from_store_id=store.store_id, from_position=position, from_hash="sha256:" + chained.hex())
    events: list[tuple[str, int, Event]] = [
        *((str(STORE_STREAM), len(recorded) + 1, event) for event in STORE.decide(store, RecordCopy(copied))),
        (instance_id, 1, this_instance(settings, "cli")),
        (instance_id, 2, InstanceStopped(reason="done")),
    ]
    envelope = encode_envelope(
        Caller("cli", RequestId(f"req-{ids.uuid()}"), "codespace-es store copy"), recorded_at=SystemClock().now(),
        instance_id=instance_id, append_id=AppendId(f"apd-{ids.uuid()}"))
    return [
        NewRow(stream, stream.encode(), version, event.TOPIC, event.TOPIC.encode(), envelope + encode_event(event))
        for stream, version, event in events
    ]


def _copy(source: LogReader, place: LogPlace, last: list[NewRow]) -> int:
    if not isinstance(place, Path):
        from adapters.log.postgres.making import make_log

        make_log(place)
    database = open_database(place, lock_timeout_seconds=_LOCK_SECONDS)
    try:
        return copy_log(source, database, last)
    finally:
        database.close()


def _remove(path: LogPlace) -> None:
    """Remove an empty log that was made for nothing, with its side files."""
    assert isinstance(path, Path)
    for ending in ("", "-wal", "-shm", "-turn", "-next"):
        path.with_name(path.name + ending).unlink(missing_ok=True)
