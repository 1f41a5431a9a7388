"""One log in a file and in PostgreSQL, copied byte for byte: every audit gives the same answer, byte for byte."""

import json
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import pytest
from stored_log import load

from adapters.cli import store_copy
from adapters.cli.options import effective_settings
from adapters.log.copying import copy_log
from adapters.log.places import LogPlace, open_database
from adapters.log.postgres.making import make_log
from adapters.log.reader import LogReader
from adapters.settings.load import Flags
from codespace_es.event_catalogue import CATALOGUE
from replay.export import cloud_events, json_lines
from replay.page import page
from replay.report import gather
from replay.spans import otlp_lines
from support.cli_project import Called, Project
from support.postgres import PostgresServer

LOGS = [
    pytest.param(path, id=f"{path.parent.name}-{path.stem}", marks=() if path.stem == "session" else pytest.mark.soak)
    for path in sorted((Path(__file__).parent / "logs").glob("*/*.jsonl"))
]


class Pair(NamedTuple):
    """The same log twice, and what it is about."""

    project: Project
    places: tuple[LogPlace, LogPlace]
    streams: tuple[str, ...]
    head: int
    time: str
    """When the event in the middle was recorded."""

    def call(self, place: LogPlace, *arguments: str) -> Called:
        """Return what a command answers about the log at one place."""
        with pytest.MonkeyPatch.context() as environment:
            if isinstance(place, Path):
                environment.delenv("CODESPACE_STORE", raising=False)
            else:
                environment.setenv("CODESPACE_STORE", place.url)
            return self.project.call(*arguments)

    def call_both(self, *arguments: str) -> tuple[Called, Called]:
        """Return the answer about the file and that about the tables."""
        file, tables = self.places
        return self.call(file, *arguments), self.call(tables, *arguments)


@pytest.fixture(scope="module", params=LOGS)
def pair(request: pytest.FixtureRequest, postgres: PostgresServer, tmp_path_factory: pytest.TempPathFactory) -> Pair:
    """Make both by one copy each of a kept log, with the same last words."""
    directory = tmp_path_factory.mktemp("pair")
    source = directory / "source.db"
    load(request.param.read_text(encoding="utf-8"), source)
    project = Project(directory, directory / "data")
    places = (project.data / "codespace.db", postgres.new_schema())
    project.data.mkdir(mode=0o700)
    make_log(places[1])
    with LogReader(source, CATALOGUE) as reader:
        last = store_copy._last(effective_settings(Flags(data_dir=str(project.data)), {}), reader)
        for place in places:
            database = open_database(place, lock_timeout_seconds=5)
            copy_log(reader, database, last)
            database.close()
    with LogReader(places[0], CATALOGUE) as reader:
        events = list(reader.read_log())
    streams = tuple(dict.fromkeys(str(each.stream_id) for each in events))
    time = events[len(events) // 2].envelope.recorded_at.isoformat()
    return Pair(project, places, streams, len(events), time)


def questions(pair: Pair) -> Iterator[tuple[str, ...]]:
    """Yield command lines that only read, reasonable and unreasonable."""
    middle, head = str(pair.head // 2), str(pair.head)
    for after in ("0", middle, head, "9" * 18, "9" * 19, "9" * 40):
        yield "log", "--after", after, "--limit", "1000", "--json"
    yield "log", "--limit", "7"
    for name, value in (("--kind", "operation"), ("--text", "demo"), ("--workspace", "demo"), ("--since", pair.time),
                        ("--until", pair.time), ("--session", "inst-"), ("--operation", pair.streams[-1])):
        yield "log", "--after", "0", "--json", name, value
    for stream in (*pair.streams, "key-1", "op-", "op-unknown", "", "op-\x00", "%", "\u00e9", "op-\udcff"):
        yield "show", stream, "--json"
    for moment in ("0", "1", middle, head, "head", pair.time, f"{pair.streams[1]}@1", "2020-01-01", "9" * 40, "store@0",
                   "store@" + "9" * 19, "\x00"):
        yield "replay", "--at", moment, "--all", "--json"
        yield "replay", "--at", moment, "--json"
        yield "files", "--at", moment, "--json"
        yield "diff", f"{moment}..{head}", "--json"
    yield "diff", f"1..{head}", "--files"
    yield "compare", "--json"
    yield "compare", "--json", "--after", middle
    for limits in (("--older-than", "0m"), ("--larger-than", "1"), ("--older-than", "0m", "--kind", "result")):
        yield "prune", *limits, "--json"
    for command in (("processes", "--all"), ("approvals", "list"), ("inbox", "works"), ("hosts", "list"),
                    ("store", "reindex", "--check")):
        yield *command, "--json"


def test_every_question_has_the_same_answer(pair: Pair) -> None:
    for question in questions(pair):
        file, tables = pair.call_both(*question)
        assert tables == file, question
        assert "Traceback" not in file.stderr
        assert file.returncode in {0, 1, 2}


def test_both_are_whole(pair: Pair) -> None:
    reports = [json.loads(called.stdout) for called in pair.call_both("verify", "--json")]
    for report in reports:
        del report["duration_ms"], report["events_per_second"]
    assert reports[0] == reports[1]
    assert reports[0]["is_ok"]
    head = f"{reports[0]['head_position']}:{reports[0]['head_hash']}"
    assert [called.returncode for called in pair.call_both("verify", "--head", head)] == [0, 0]


def test_every_export_and_what_is_stored_is_the_same(pair: Pair) -> None:
    with LogReader(pair.places[0], CATALOGUE) as file, LogReader(pair.places[1], CATALOGUE) as tables:
        assert list(tables.raw_rows()) == list(file.raw_rows())
        assert list(tables.stored_contents()) == list(file.stored_contents())
        assert list(tables.stored_bodies()) == list(file.stored_bodies())
        assert tables.open_items() == file.open_items()
        for after in (0, pair.head // 2, pair.head):
            assert list(otlp_lines(tables, after=after)) == list(otlp_lines(file, after=after))
            for has_bodies in (True, False):
                for lines in (json_lines, cloud_events):
                    assert list(lines(tables, after=after, has_bodies=has_bodies)) == list(
                        lines(file, after=after, has_bodies=has_bodies))


def test_a_report_is_the_same(pair: Pair) -> None:
    pages = []
    for place in pair.places:
        with LogReader(place, CATALOGUE) as reader:
            told = gather(reader, 0, pair.head)
        quick = told.verification.model_copy(update={"duration_ms": 0, "events_per_second": 0})
        pages.append("".join(page(replace(told, verification=quick), made_at="now", software="this")))
    assert pages[0] == pages[1]


def test_the_files_of_a_moment_are_written_the_same(pair: Pair, tmp_path: Path) -> None:
    target = tmp_path / "files"
    for moment in ("5", "head"):
        answers, trees = [], []
        for place in pair.places:
            answers.append(pair.call(place, "files", "--at", moment, "--restore", str(target)))
            trees.append({path.relative_to(target): path.read_bytes() for path in target.rglob("*") if path.is_file()})
            shutil.rmtree(target)
        assert answers[0] == answers[1]
        assert trees[0] == trees[1]
