"""One server and one browser for each file: what drives the browser keeps an event loop running in its thread."""

from collections.abc import Iterator

import pytest

from support.browser import Stage, stage


@pytest.fixture(scope="module")
def on_stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """Yield the stage."""
    with stage(tmp_path_factory.mktemp("console")) as opened:
        yield opened
