"""One server and one browser for all that is tried in it."""

from collections.abc import Iterator

import pytest

from support.browser import Stage, stage


@pytest.fixture(scope="session")
def on_stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """Yield the stage."""
    with stage(tmp_path_factory.mktemp("console")) as opened:
        yield opened
