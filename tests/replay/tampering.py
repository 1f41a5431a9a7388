"""Damage a log file as somebody who may write it could: past the triggers, with or without hiding it."""

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Self

from adapters.log import bodies
from adapters.log.chain import GENESIS, link
from adapters.log.rows import encode_event
from adapters.log.sqlite import schema
from adapters.log.sqlite.connecting import driver
from codespace_es.ports.log import NewBody
from codespace_es.vocabulary.event import Envelope, Event


class Tamperer:
    """An open log file without its guards."""

    def __init__(self, path: Path) -> None:
        self._connection = driver.connect(path, isolation_level=None)
        self._connection.execute("DROP TRIGGER IF EXISTS events_refuse_update")
        self._connection.execute("DROP TRIGGER IF EXISTS events_refuse_delete")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for statement in schema.STATEMENTS:
            if statement.startswith("CREATE TRIGGER"):
                with suppress(driver.OperationalError):  # the table may be gone
                    self._connection.execute(statement)
        self._connection.close()

    def execute(self, statement: str, *values: object) -> list[tuple]:
        return self._connection.execute(statement, values).fetchall()

    def state(self, position: int) -> bytes:
        return self.execute("SELECT state FROM events WHERE position = ?", position)[0][0]

    def change_state(self, position: int, change: Callable[[bytes], bytes]) -> None:
        self.execute("UPDATE events SET state = ? WHERE position = ?", change(self.state(position)), position)

    def drop(self, position: int) -> None:
        self.execute("DELETE FROM events WHERE position = ?", position)

    def swap(self, first: int, second: int) -> None:
        """Exchange what stands at two positions."""
        for old, new in ((first, -1), (second, first), (-1, second)):
            self.execute("UPDATE events SET position = ? WHERE position = ?", new, old)

    def append(self, stream_id: str, version: int, event: Event, *, like: int, append_id: str | None = None) -> int:
        """Add an event with the envelope of the one at `like`, and an append of its own; return its position."""
        position = self.execute("SELECT max(position) FROM events")[0][0] + 1
        envelope = self.state(like).partition(b"\n")[0]
        own = (append_id or f"apd-forged-{position}").encode()
        start = envelope.index(b'"append_id":"') + len(b'"append_id":"')
        envelope = envelope[:start] + own + envelope[envelope.index(b'"', start):]
        self.execute("INSERT INTO events VALUES (?, ?, ?, ?, ?, ?)", position, stream_id, version, event.TOPIC,
                     envelope + b"\n" + encode_event(event), b"")
        self.hide()
        return position

    def hide(self) -> None:
        """Number the events anew and give them hashes that fit: only the laws can tell now."""
        rows = self.execute("SELECT position, stream_id, version, topic, state FROM events ORDER BY position")
        previous = GENESIS
        for number, (position, stream, version, topic, state) in enumerate(rows, start=1):
            previous = link(previous, number, stream.encode(), version, topic.encode(), state)
            self.execute("UPDATE events SET position = ?, hash = ? WHERE position = ?", number, previous, position)

    def drop_body(self, stream_id: str, digest: str) -> None:
        self.execute("DELETE FROM bodies WHERE stream_id = ? AND digest = ?", stream_id, bodies.key_of(digest))

    def change_body(self, stream_id: str, digest: str, content: bytes) -> None:
        self.execute("UPDATE bodies SET content = ? WHERE stream_id = ? AND digest = ?", content, stream_id,
                     bodies.key_of(digest))

    def add_body(self, body: NewBody, *, like: int | None = None) -> None:
        """Store a content as the append of the event at `like` would have; of the newest without it."""
        state = self.state(like or self.execute("SELECT max(position) FROM events")[0][0])
        recorded_at = Envelope.model_validate_json(state.partition(b"\n")[0]).recorded_at
        bodies.insert(self._connection, [bodies.row_of(body, round(recorded_at.timestamp() * 1000))])


def copy_log(lived: Path, scratch: Path) -> Path:
    """Return `scratch` with a copy of the log of `lived`, to be damaged."""
    (scratch / "data").mkdir()
    (scratch / "data" / "codespace.db").write_bytes((lived / "data" / "codespace.db").read_bytes())
    return scratch


def position(tamperer: Tamperer, topic: str, nth: int = 0) -> int:
    """Return where the `nth` event of a topic stands."""
    rows = tamperer.execute("SELECT position FROM events WHERE topic = ? ORDER BY position", topic)
    return int(rows[nth][0])


def drop(topic: str, nth: int = 0) -> Callable[[Tamperer], None]:
    """Return what takes such an event out, unseen by the chain."""
    return lambda tamperer: tamperer.drop(position(tamperer, topic, nth))


def change(topic: str, old: bytes, new: bytes, nth: int = 0) -> Callable[[Tamperer], None]:
    """Return what changes the text of such an event, unseen by the chain."""

    def apply(tamperer: Tamperer) -> None:
        at = position(tamperer, topic, nth)
        assert old in tamperer.state(at)
        tamperer.change_state(at, lambda state: state.replace(old, new))

    return apply
