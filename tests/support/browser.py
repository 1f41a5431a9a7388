"""A real Chromium, driven from a test, and a real server with an agent on it; without the browser a skip says so.

The system's Chromium is used, or the one that CODESPACE_CHROMIUM names; none is downloaded.
"""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from anyio.from_thread import BlockingPortal, start_blocking_portal
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, ViewportSize, expect, sync_playwright

from support.http_client import (
    OPERATOR_TOKEN,
    TOKEN,
    HttpServer,
    call_message,
    http_product,
    serving,
    structured,
)

CHROMIUM = os.environ.get("CODESPACE_CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")

needs_chromium = pytest.mark.skipif(CHROMIUM is None, reason="Chromium isn't installed; .ci/run does it")

MS_MAX = 20_000
"""How long a page may take to say what is waited for, on a machine that has much else to do."""

DESK: ViewportSize = {"width": 1200, "height": 900}

CONFIGURATION = """
[defaults]
profile = "workspace-write"
live_process = "shared"
sandbox = "off"
operator_unsafe = true
process_timeout_seconds = 0

[workspaces.free]
root = "{free}"

[workspaces.held]
root = "{held}"
approvals = "operator"
"""


@dataclass
class Stage:
    """A server, the directories that it serves, and a browser to look at it."""

    server: HttpServer
    portal: BlockingPortal
    scratch: Path
    browser: Browser
    _kept: "Window | None" = None

    def root(self, workspace: str) -> Path:
        """Return the directory of a workspace."""
        return self.scratch / workspace

    def ask(self, called: str, **arguments: Any) -> dict[str, Any]:
        """Return what an agent is answered."""

        async def call() -> dict[str, Any]:
            async with self.server.plain() as client:
                message = {**call_message(called), "params": {"name": called, "arguments": arguments}}
                return structured(await client.post(self.server.url, json=message))

        return self.portal.call(call)

    def look(self, path: str) -> Any:
        """Return what the operator's API answers."""

        async def get() -> Any:
            async with self.server.operator() as client:
                return (await client.get(path)).json()

        return self.portal.call(get)

    def act(self, path: str, **body: Any) -> Any:
        """Return what the operator's API answers to an act."""

        async def post() -> Any:
            async with self.server.operator() as client:
                return (await client.post(path, json=body)).json()

        return self.portal.call(post)

    @contextmanager
    def window(self) -> Iterator["Window"]:
        """Yield a window on the overview in which the operator has logged in; nothing may have gone wrong at the end.

        It is the one of the test before, since to open one and to log in takes longer than all else that most tests do.
        """
        window, self._kept = self._kept or self._log_in(), None
        window.page.set_viewport_size(DESK)
        window.page.goto("/console")
        try:
            yield window
            assert window.faults == []
        except BaseException:
            window.context.close()
            raise
        self._kept = window

    @contextmanager
    def new_window(self) -> Iterator["Window"]:
        """Yield the same in a window of its own, for what would spoil it for others."""
        window = self._log_in()
        try:
            yield window
            assert window.faults == []
        finally:
            window.context.close()

    def _log_in(self) -> "Window":
        context = self.browser.new_context(base_url=self.server.root)
        context.set_default_timeout(MS_MAX)
        window = Window(context, context.new_page())
        window.page.on("console", window.note)
        window.page.on("pageerror", lambda error: window.faults.append(str(error)))
        window.page.goto("/console")
        window.page.get_by_label("Operator's token").fill(OPERATOR_TOKEN)
        window.page.get_by_role("button", name="Log in").click()
        window.page.wait_for_url("**/console")
        return window


@dataclass
class Window:
    """A window of the browser, and what has gone wrong in it."""

    context: BrowserContext
    page: Page
    faults: list[str] = field(default_factory=list)

    def note(self, message: ConsoleMessage) -> None:
        """Keep what the browser complains of."""
        if message.type == "error":
            self.faults.append(message.text)

    def is_live(self) -> None:
        """Wait until the page hears of events."""
        self.page.locator("#live.on").wait_for()


@contextmanager
def stage(scratch: Path) -> Iterator[Stage]:
    """Yield a stage; its server and its browser end with it."""
    for name in ("free", "held"):
        (scratch / name).mkdir()
    configuration = scratch / "console.toml"
    configuration.write_text(
        CONFIGURATION.format(free=scratch / "free", held=scratch / "held"), encoding="utf-8"
    )
    command = [*http_product(scratch), "--config", str(configuration)]
    with (
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(
            serving(command, scratch, token=TOKEN, operator_token=OPERATOR_TOKEN)
        ) as server,
        sync_playwright() as playwright,
    ):
        expect.set_options(timeout=MS_MAX)
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        try:
            yield Stage(server, portal, scratch, browser)
        finally:
            browser.close()
        assert "Traceback" not in server.log
        assert OPERATOR_TOKEN not in server.log
