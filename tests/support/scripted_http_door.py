"""A server over HTTP whose door is scripted, for what no real workspace can be brought to answer."""

from pathlib import Path
from typing import NoReturn

import anyio

from adapters.http.listening import listen
from adapters.http.serving import serve_http
from adapters.mcp_server.server import build_server
from adapters.settings.http import HttpSettings
from support.scripted_door import ScriptedDoor, ScriptedLife

COMMAND = ["-m", "support.scripted_http_door"]


def nothing_to_look_at() -> NoReturn:
    raise AssertionError("without an operator nobody looks at the log")


async def main() -> None:
    door, life = ScriptedDoor(), ScriptedLife()
    settings = HttpSettings(port=0)
    with listen(settings) as listener:
        server = build_server(door, life)  # type: ignore[arg-type]  # they stand for the real ones
        await serve_http(server, door, life, listener, settings, open_source=nothing_to_look_at)  # type: ignore[arg-type]


if __name__ == "__main__":
    import logging
    import sys

    assert Path(__file__).exists()
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING, format="%(message)s")
    anyio.run(main)
