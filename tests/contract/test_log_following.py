"""`log --follow` on a PostgreSQL: it outlives its connection, misses and doubles nothing, and ends when told to."""

import json
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import anyio
import pytest

from adapters.bootstrap import open_codespace
from adapters.cli.following import follow
from adapters.cli.options import effective_settings
from adapters.log.postgres.making import make_log
from adapters.log.reader import LogReader
from adapters.settings.load import Flags
from adapters.settings.postgres_address import PostgresAddress
from codespace_es.event_catalogue import CATALOGUE
from codespace_es.ports.log import StoreUnavailableError
from replay.timeline import Wanted
from support.cli_project import Project, patch
from support.faulty_line import FaultyLine
from support.postgres import PostgresServer, schema_of
from support.programs import Program, running
from support.warm_servers import PRODUCT, own_environment

END = "operation.finished.v1"


class Followed:
    """A project whose log is in PostgreSQL, and a line to it that can be cut."""

    def __init__(self, postgres: PostgresServer, directory: Path) -> None:
        self.postgres = postgres
        self.project = Project.make(directory)
        self.line = FaultyLine(postgres.port)
        self.place = postgres.new_log()
        self.work()

    def work(self) -> None:
        """Let a server apply one patch more."""
        async def apply() -> None:
            flags = Flags(data_dir=str(self.project.data), workspaces=(f"demo={self.project.root}",))
            settings = effective_settings(flags, {"CODESPACE_STORE": self.place.url})
            async with open_codespace(settings, transport="stdio") as opened:
                number = len(list(self.project.root.iterdir()))
                await patch(opened, f"*** Begin Patch\n*** Add File: at{number}.txt\n+x\n*** End Patch\n")

        anyio.run(apply)

    def ends(self) -> list[int]:
        """Return the positions at which patches have ended."""
        with LogReader(self.place, CATALOGUE) as reader:
            return [recorded.position for recorded in reader.read_log() if recorded.topic == END]

    def by_line(self) -> PostgresAddress:
        """Return the log's address by the line."""
        return self.postgres.address(schema_of(self.place), port=self.line.port)

    def cut(self) -> None:
        """End every session."""
        self.postgres.query(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'codespace-es'")

    def remove(self) -> None:
        """Leave no log there."""
        schema = schema_of(self.place)
        self.postgres.query(f"DROP SCHEMA {schema} CASCADE; CREATE SCHEMA {schema}")

    def replace(self) -> None:
        """Put another log there, as long as this one."""
        self.remove()
        make_log(self.place)
        self.work()

    @contextmanager
    def follow(self) -> Iterator[Program]:
        """Give a process that follows by the line and has shown the ends of two patches."""
        command = [PRODUCT, "log", "--follow", "--after", "0", "--kind", "operation.finished", "--json", "--data-dir",
                   str(self.project.data)]
        with running(command, {**own_environment(), "CODESPACE_STORE": self.by_line().url}) as program:
            assert [shown(program)] == self.ends()
            self.work()  # what has come since is read on the connection that stays
            assert shown(program) == self.ends()[-1]
            yield program


def shown(program: Program) -> int:
    """Return the position of the event that is shown next."""
    return int(json.loads(program.stdout.readline())["position"])


def told(program: Program) -> str:
    return program.stderr.readline()


@pytest.fixture
def followed(postgres: PostgresServer, tmp_path: Path) -> Iterator[Followed]:
    made = Followed(postgres, tmp_path)
    yield made
    made.line.close()


@pytest.mark.parametrize("is_for_long", [False, True], ids=["cut", "cut for long"])
def test_it_goes_on_where_it_was_when_its_connection_is_cut(followed: Followed, is_for_long: bool) -> None:
    with followed.follow() as program:
        followed.line.is_down = is_for_long
        followed.cut()
        assert told(program).startswith("codespace-es: The event log can't be read now, so it is tried again")
        followed.work()
        followed.line.is_down = False
        assert told(program) == "codespace-es: The event log can be read again.\n"
        followed.work()
        assert [shown(program), shown(program)] == followed.ends()[2:]
        program.process.send_signal(signal.SIGINT)
        assert program.process.wait(timeout=60) == 0
        assert (program.stdout.read(), program.stderr.read()) == ("", "")


@pytest.mark.parametrize(("becomes", "reason"), [
    ("another", "it is another than before"),
    ("none", "there is no event log in this database; make one, once: codespace-es store init"),
])
def test_it_ends_when_what_is_there_is_not_the_log_any_more(followed: Followed, becomes: str, reason: str) -> None:
    with followed.follow() as program:
        followed.line.is_down = True
        followed.cut()
        assert "tried again" in told(program)
        if becomes == "another":
            followed.replace()
        else:
            followed.remove()
        followed.line.is_down = False
        assert reason in told(program)
        assert program.process.wait(timeout=60) == 2


def test_another_log_is_noticed_at_the_first_look(followed: Followed) -> None:
    with LogReader(followed.place, CATALOGUE) as source:
        newest = source.head()
    followed.replace()
    settings = effective_settings(Flags(data_dir=str(followed.project.data)), {"CODESPACE_STORE": followed.place.url})
    with pytest.raises(StoreUnavailableError, match="it is another than before"):
        follow(settings, Wanted(), after=0, newest=newest, show=lambda entries: pytest.fail(f"{entries}"))


@pytest.mark.soak
def test_who_says_nothing_any_more_is_taken_for_gone(followed: Followed) -> None:
    with followed.follow() as program:
        followed.line.fail_next("silence")
        assert "tried again and again: PostgreSQL doesn't answer." in told(program)
        assert told(program) == "codespace-es: The event log can be read again.\n"
