"""An instance that is told to end while it starts leaves nothing open."""

import gc
import warnings
from types import SimpleNamespace
from typing import Any

import anyio
import pytest

from codespace_es.command_handlers.instance_life import living

pytestmark = pytest.mark.anyio


async def test_an_end_in_the_middle_of_the_start_leaves_nothing_open() -> None:
    begun = anyio.Event()

    async def read_for_ever(*_arguments: object, **_keywords: object) -> None:
        begun.set()
        await anyio.sleep_forever()

    world: Any = SimpleNamespace(log=SimpleNamespace(read_stream=read_for_ever))
    nothing: Any = None

    async def live() -> None:
        async with living(world, nothing, nothing):
            raise AssertionError("it never starts")

    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(live)
            await begun.wait()
            tasks.cancel_scope.cancel()
        gc.collect()
    assert [str(each.message) for each in warned] == []
