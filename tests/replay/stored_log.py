"""A log as a text file that is kept for ever: one JSON object a line, first the events, then the contents.

An event: `position`, `stream_id`, `version`, `topic`, `state` (the stored bytes as text) and `hash`. A content:
`stream_id`, `digest`, `kind`, `content` in base64. An open item: `open` with its columns.

`python tests/replay/stored_log.py DIRECTORY` writes the scripted life of this version; do it once a release.
"""

import base64
import json
import sys
import tempfile
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import fields, is_dataclass
from hashlib import sha256
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
if __name__ == "__main__":
    sys.path[:0] = [str(REPOSITORY), str(REPOSITORY / "src"), str(REPOSITORY / "tests/replay")]

import anyio  # noqa: E402
from pydantic import BaseModel  # noqa: E402
from scripted_log import write_a_life  # noqa: E402

from adapters.log.bodies import key_of  # noqa: E402
from adapters.log.reader import LogReader  # noqa: E402
from adapters.log.sqlite import schema  # noqa: E402
from adapters.log.sqlite.connecting import driver  # noqa: E402
from codespace_es.event_catalogue import CATALOGUE  # noqa: E402
from codespace_es.vocabulary.event import RecordedEvent  # noqa: E402
from codespace_es.vocabulary.fingerprint import canonical_json  # noqa: E402
from replay.memory import DECIDERS  # noqa: E402
from replay.naming import named_bodies  # noqa: E402


def export(path: Path) -> str:
    """Return the log at `path` as lines of JSON."""
    with LogReader(path, CATALOGUE) as reader:
        lines: list[dict[str, object]] = [
            {"position": position, "stream_id": stream, "version": version, "topic": topic, "state": state.decode(),
             "hash": stored.hex()}
            for position, stream, version, topic, state, stored in reader.raw_rows()
        ]
        for body in sorted(reader.stored_bodies(), key=lambda body: (body.stream_id, body.digest)):
            content = reader.read_body(body.stream_id, body.digest)
            assert content is not None
            lines.append({"stream_id": body.stream_id, "digest": body.digest, "kind": body.kind,
                          "content": base64.b64encode(content).decode()})
        lines += [
            {"open": [item.stream_id, item.kind, item.workspace_key, item.instance_id, item.position]}
            for item in reader.open_items()
        ]
    return "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)


def load(text: str, path: Path) -> None:
    """Make a log file at `path` that holds what `text` says, byte for byte."""
    connection = driver.connect(path, isolation_level=None)
    schema.create_if_empty(connection)
    for line in map(json.loads, text.splitlines()):
        if "position" in line:
            connection.execute("INSERT INTO events VALUES (?, ?, ?, ?, ?, ?)", (
                line["position"], line["stream_id"], line["version"], line["topic"], line["state"].encode(),
                bytes.fromhex(line["hash"])))
        elif "digest" in line:
            content = base64.b64decode(line["content"])
            connection.execute("INSERT INTO bodies VALUES (?, ?, ?, ?, ?, ?)", (
                line["stream_id"], key_of(line["digest"]), line["kind"], len(content), 0, content))
        else:
            connection.execute("INSERT INTO open_items VALUES (?, ?, ?, ?, ?)", line["open"])
    connection.close()
    _date_contents(path)


def _date_contents(path: Path) -> None:
    """Let each content have been stored when the first event that names it was: the text doesn't tell."""
    with LogReader(path, CATALOGUE) as reader:
        dates = [
            (round(recorded.envelope.recorded_at.timestamp() * 1000), recorded.stream_id, key_of(named.digest))
            for recorded in reader.read_log() for named in named_bodies(recorded.event)
        ]
    connection = driver.connect(path, isolation_level=None)
    for date in dates:
        connection.execute(
            "UPDATE bodies SET stored_at_ms = ? WHERE stream_id = ? AND digest = ? AND stored_at_ms = 0", date)
    connection.close()


def digest_of_folds(path: Path) -> str:
    """Return the digest of the states that the streams of the log at `path` fold to.

    A state counts with its name and with what its events said when they were written, so that a field that is added
    later, with a default, changes nothing.
    """
    streams: dict[str, list[RecordedEvent]] = {}
    with LogReader(path, CATALOGUE) as reader:
        for recorded in reader.read_log():
            streams.setdefault(recorded.stream_id, []).append(recorded)
    states = {
        stream_id: _told(DECIDERS[stream_id.partition("-")[0]].fold_recorded(recorded))
        for stream_id, recorded in streams.items()
    }
    return sha256(canonical_json(states)).hexdigest()


def _told(value: object) -> object:
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json", exclude_unset=True)
    if isinstance(value, Mapping):
        return {str(key): _told(each) for key, each in value.items()}
    if isinstance(value, tuple):
        return [_told(each) for each in value]
    if not is_dataclass(value):
        return value
    # What a state doesn't show follows from the rest, and may come and go.
    told = {field.name: _told(getattr(value, field.name)) for field in fields(value) if field.repr}
    return {"state": type(value).__name__, **told}


def store(log: Path, directory: Path, name: str) -> None:
    """Keep the log file as `name` in a directory, with the digest of what it folds to."""
    directory.mkdir(parents=True, exist_ok=True)
    (directory / f"{name}.jsonl").write_text(export(log), encoding="utf-8")
    (directory / f"{name}.digest").write_text(digest_of_folds(log) + "\n", encoding="utf-8")


def store_life(live: Callable[[Path, Path], Awaitable[None]], directory: Path, name: str) -> None:
    """Have `live` write a session of servers, given a directory for its data and a workspace, and keep its log."""
    with tempfile.TemporaryDirectory() as scratch:
        root = Path(scratch) / "project"
        root.mkdir()
        anyio.run(live, Path(scratch), root)
        store(Path(scratch) / "data" / "codespace.db", directory, name)


def main() -> None:
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch) / "log.db"
        anyio.run(write_a_life, path)
        store(path, Path(sys.argv[1]), "life")


if __name__ == "__main__":
    main()
