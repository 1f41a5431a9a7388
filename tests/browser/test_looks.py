"""Every page in a real browser, light, dark and on a phone: named controls, contrast, nothing cut off, nothing run.

Set CODESPACE_SCREENSHOTS to a directory to have a picture of each.
"""

import os
from pathlib import Path
from typing import Literal

import pytest
from playwright.sync_api import Page, ViewportSize

from support.browser import DESK, Stage, needs_chromium
from support.holds import ADD

pytestmark = needs_chromium

HOSTILE = "<img src=x onerror=stolen=1></textarea><script>stolen=1</script> \N{RIGHT-TO-LEFT OVERRIDE}txt.exe"

PHONE: ViewportSize = {"width": 390, "height": 844}
SCHEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")

UNNAMED = """() => [
    ...document.querySelectorAll("a[href], button, input:not([type=hidden]), select, textarea, summary")
].filter((each) => {
        const labels = each.labels ? [...each.labels].map((label) => label.textContent).join("") : "";
        return !(each.textContent.trim() || labels.trim() || each.getAttribute("aria-label"));
    }).map((each) => each.outerHTML)"""

FAINT = """() => {
    const parse = (colour) => (colour.match(/[\\d.]+/g) || []).map(Number);
    const light = ([r, g, b]) => [r, g, b].map((each) => each / 255)
        .map((each) => each <= 0.03928 ? each / 12.92 : ((each + 0.055) / 1.055) ** 2.4)
        .reduce((sum, each, place) => sum + each * [0.2126, 0.7152, 0.0722][place], 0);
    const mix = (over, under) => {
        const share = over.length > 3 ? over[3] : 1;
        return [0, 1, 2].map((place) => over[place] * share + under[place] * (1 - share));
    };
    const ground = (element) => {
        const own = parse(getComputedStyle(element).backgroundColor);
        const isOpaque = own.length === 3 || own[3] === 1;
        if (isOpaque && own.length) return own;
        return mix(own, element.parentElement ? ground(element.parentElement) : [255, 255, 255]);
    };
    const faint = [];
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    for (let node = walker.nextNode(); node; node = walker.nextNode()) {
        const element = node.parentElement;
        if (!node.textContent.trim() || !element.checkVisibility() || element.closest(":disabled, noscript")) continue;
        const style = getComputedStyle(element), under = ground(element);
        let text = mix(parse(style.color), under);
        for (let each = element; each; each = each.parentElement) {
            text = mix([...text, Number(getComputedStyle(each).opacity)], under);
        }
        const [high, low] = [light(text), light(under)].sort((one, other) => other - one);
        const ratio = (high + 0.05) / (low + 0.05);
        if (ratio < 4.5) faint.push(ratio.toFixed(2) + " " + node.textContent.trim().slice(0, 60));
    }
    return faint;
}"""


@pytest.fixture(scope="module")
def pages(on_stage: Stage) -> dict[str, str]:
    """Return a path for each kind of page, with something hostile on it."""
    ask = on_stage.ask
    work = ask("work_open", workspace_id="free", title=HOSTILE)["work_id"]
    ids = [
        on_stage.act(f"/operator/works/{work}/intents", body=HOSTILE, delivery=delivery)["intent_id"]
        for delivery in ("next_checkpoint", "next_checkpoint", "after_current_work")
    ]
    for intent in ids[:2]:
        on_stage.act(f"/operator/intents/{intent}/queue", revision=1)
    ask("steer_claim_next", work_id=work)
    patch = ADD.format(path="a <b> of a rather long name that goes on and on & on.txt", text=HOSTILE + " long" * 60)
    held = ask("apply_patch", workspace_id="held", patch=patch)["approval_id"]
    command = ask("exec_command", workspace_id="held", command=["sh", "-c", HOSTILE])["approval_id"]
    operation = ask("apply_patch", workspace_id="free", patch=patch)["operation_id"]
    argv = ["sh", "-c", f"cat <<'END'\n{HOSTILE}\nEND\nsleep 600"]
    process = ask("exec_command", workspace_id="free", command=argv)["process_id"]
    (on_stage.root("free") / "a.py").write_text("old\n")
    edited = ask("ast_edit", workspace_id="free", ops=[{"pat": "old", "out": "new"}], paths=["a.py"])
    return {
        "overview": "/console", "previews": "/console/pending", "preview": f"/console/pending/{edited['action_id']}",
        "approvals": "/console/approvals",
        "hold-patch": f"/console/approvals/{held}",
        "hold-command": f"/console/approvals/{command}", "works": "/console/works", "work": f"/console/works/{work}",
        "timeline": "/console/timeline", "operation": f"/console/operations/{operation}",
        "processes": "/console/processes", "process": f"/console/processes/{process}",
        "verification": "/console/verification",
    }


def test_every_page_is_whole_readable_and_runs_nothing_of_others(on_stage: Stage, pages: dict[str, str]) -> None:
    with on_stage.window() as window:
        page = window.page
        for name, path in pages.items():
            page.goto(path)
            assert page.evaluate("typeof stolen") == "undefined", name
            assert page.evaluate(UNNAMED) == [], name
            assert page.locator("h1").count() == 1, name
            look_at(page, name)


def test_the_way_in_is_readable_too(on_stage: Stage) -> None:
    page = on_stage.browser.new_page(base_url=on_stage.server.root, viewport=DESK)
    try:
        page.goto("/")
        look_at(page, "front")
        page.get_by_role("link", name="operator's console").click()
        page.wait_for_url("**/console/login**")
        assert page.evaluate(UNNAMED) == []
        look_at(page, "login")
    finally:
        page.close()


def look_at(page: Page, name: str) -> None:
    """Look at a page that is open: light and dark, on a desk and on a phone."""
    for scheme in SCHEMES:
        page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
        assert page.evaluate(FAINT) == [], (name, scheme)
        for device, size in (("phone", PHONE), ("desk", DESK)):
            page.set_viewport_size(size)
            take_picture(page, f"{scheme}-{device}-{name}")
            wide = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
            assert wide <= 0, f"{name} is {wide} pixels wider than a {device}"
    page.emulate_media(color_scheme="light")


def take_picture(page: Page, name: str) -> None:
    pictures = os.environ.get("CODESPACE_SCREENSHOTS")
    if pictures:
        page.screenshot(path=Path(pictures) / f"{name}.png", full_page=True)


def test_by_keyboard_the_content_is_one_step_away_and_focus_shows(on_stage: Stage, pages: dict[str, str]) -> None:
    with on_stage.window() as window:
        page = window.page
        page.goto(pages["works"])
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.className") == "skip"
        page.keyboard.press("Enter")
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.closest('main') !== null")
        outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
        assert outline == "solid"
