"""One log that is open several times at once, in a file and in PostgreSQL."""

from pathlib import Path

import pytest

from adapters.log.places import LogPlace
from adapters.log.reader import LogReader
from codespace_es.ports.log import Append, InstanceClosedError, NewEvent
from codespace_es.vocabulary.identifiers import StreamId
from unit.log.sample_events import (
    CALLER,
    CATALOGUE,
    ME,
    OTHER,
    InstanceRecovered,
    finished,
    increased,
    make_log,
    minted,
    started,
)

pytestmark = pytest.mark.anyio


@pytest.fixture(params=["file", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> LogPlace:
    if request.param == "file":
        return tmp_path / "data" / "log.db"
    address: LogPlace = request.getfixturevalue("postgres").new_log()
    return address


async def test_two_logs_in_one_process_see_each_other(place: LogPlace) -> None:
    async with make_log(place) as one, make_log(place) as two:
        await one.append(started(), CALLER)
        await two.append(minted(1), CALLER)
        await one.append(finished(1), CALLER)
        await two.append(increased("counter", 1), CALLER)
        assert await one.head() == await two.head()
    with LogReader(place, CATALOGUE) as reader:
        assert list(reader.find_breaks()) == []


async def test_an_instance_that_another_server_recovered_is_refused_from_then_on(place: LogPlace) -> None:
    async with make_log(place) as mine, make_log(place, instance_id=OTHER) as other:
        await mine.append(started(), CALLER)
        await mine.append(minted(1), CALLER)
        await other.append(started(OTHER), CALLER)
        await other.append(Append((NewEvent(StreamId(ME), 2, InstanceRecovered()),)), CALLER)
        with pytest.raises(InstanceClosedError):
            await mine.append(minted(2), CALLER)
        await other.append(finished(1), CALLER)
        assert [item.stream_id for item in await mine.open_items()] == [OTHER]
