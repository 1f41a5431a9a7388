"""A server that is killed while the operator looks, and comes back at the same address: pages find out."""

import re
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from support.browser import Stage, Window, needs_chromium, stage
from support.http_client import OPERATOR_TOKEN, TOKEN, http_product, serving

pytestmark = needs_chromium


@pytest.fixture
def on_stage(tmp_path: Path) -> Iterator[Stage]:
    """Yield a stage of its own, whose server may be killed."""
    with stage(tmp_path) as opened:
        yield opened


@contextmanager
def killed_and_back(on_stage: Stage, window: Window) -> Iterator[None]:
    """Kill the server, let pages see that nobody is there, and serve again at the same port."""
    port = on_stage.server.port
    on_stage.server.kill(signal.SIGKILL)
    on_stage.portal.call(on_stage.server.process.wait)
    for page in window.context.pages:
        expect(page.locator("#live")).to_have_text("connecting")
    configuration = on_stage.scratch / "console.toml"
    command = [*http_product(on_stage.scratch, address=f"127.0.0.1:{port}"), "--config", str(configuration)]
    again = serving(command, on_stage.scratch, token=TOKEN, operator_token=OPERATOR_TOKEN)
    with on_stage.portal.wrap_async_context_manager(again):
        yield
    assert [fault for fault in window.faults if not fault.startswith("Failed to load resource")] == []
    window.faults.clear()


def log_in(page: Page) -> None:
    page.get_by_label("Operator's token").fill(OPERATOR_TOKEN)
    page.get_by_role("button", name="Log in").click()


def test_pages_find_out_by_themselves_and_lead_back_to_where_they_were(on_stage: Stage) -> None:
    argv = ["sh", "-c", "echo one; sleep 600"]
    process = on_stage.ask("exec_command", workspace_id="free", command=argv)["process_id"]
    work = on_stage.ask("work_open", workspace_id="free")["work_id"]
    with on_stage.window() as window:
        page, other = window.page, window.context.new_page()
        page.goto(f"/console/processes/{process}")
        expect(page.get_by_role("log", name="Output")).to_have_text("one\n")
        other.goto(f"/console/works/{work}")
        other.get_by_role("textbox").first.fill("half an instruction")
        for each in (page, other):
            each.locator("#live.on").wait_for()
        with killed_and_back(on_stage, window):
            page.wait_for_url(re.compile("/console/login"))
            expect(other.locator("#live")).to_have_text("logged out")
            expect(other.get_by_role("textbox").first).to_have_value("half an instruction")
            log_in(page)
            page.wait_for_url(f"**/console/processes/{process}")
            expect(page.locator("#process")).to_contain_text("unknown")
            page.locator("#live.on").wait_for()
