"""A work and its queue in a real browser: written, ordered by keyboard, by button and by dragging, stopped."""

from collections.abc import Sequence

from playwright.sync_api import Page, expect

from support.browser import Stage, needs_chromium

pytestmark = needs_chromium


def work_with(on_stage: Stage, *texts: str) -> str:
    """Return a work whose queue has `texts`."""
    work = str(on_stage.ask("work_open", workspace_id="free", title="Tidy up")["work_id"])
    for text in texts:
        drafted = on_stage.act(f"/operator/works/{work}/intents", body=text, delivery="next_checkpoint")
        on_stage.act(f"/operator/intents/{drafted['intent_id']}/queue", revision=1)
    return work


def queue(on_stage: Stage, work: str) -> list[str]:
    """Return what is on record."""
    intents = on_stage.look(f"/operator/works/{work}/intents")
    return [each["body"] for each in intents if each["state"] == "queued" and each.get("work_id") == work]


def expect_order(page: Page, texts: Sequence[str]) -> None:
    expect(page.locator("[data-order] .said")).to_have_text(list(texts))


def test_an_instruction_is_written_queued_edited_and_taken_back(on_stage: Stage) -> None:
    work = work_with(on_stage)
    with on_stage.window() as window:
        page = window.page
        page.goto(f"/console/works/{work}")
        form = page.get_by_role("region", name="Write an instruction")
        form.get_by_label("Text").fill("First line.\nSecond <b>line</b>.")
        form.get_by_role("button", name="Keep as draft").click()
        drafts = page.get_by_role("region", name="Drafts")
        expect(drafts.locator(".said")).to_have_text("First line.\nSecond <b>line</b>.")
        assert on_stage.ask("steer_status", work_id=work)["queued"] == 0
        drafts.locator("summary", has_text="Edit").click()
        drafts.get_by_label("Text").fill("Better.")
        drafts.get_by_role("button", name="Save").click()
        drafts.get_by_role("button", name="Queue").click()
        expect_order(page, ["Better."])
        assert queue(on_stage, work) == ["Better."]
        page.get_by_role("button", name="Take back").click()
        expect(page.get_by_role("region", name="Queued")).to_contain_text("Nothing is queued.")
    assert queue(on_stage, work) == []


def test_the_queue_is_ordered_by_keyboard(on_stage: Stage) -> None:
    work = work_with(on_stage, "one", "two", "three")
    with on_stage.window() as window:
        page = window.page
        page.goto(f"/console/works/{work}")
        page.locator("[data-order] > li").first.focus()
        page.keyboard.press("Alt+ArrowDown")
        expect_order(page, ["two", "one", "three"])
        expect(page.locator("#moved")).to_have_text("Moved to place 2 of 3")
        page.keyboard.press("Alt+ArrowDown")
        expect(page.locator("#moved")).to_have_text("Moved to place 3 of 3")
        assert queue(on_stage, work) == ["two", "three", "one"]
        page.get_by_role("button", name="Move up: one").focus()
        page.keyboard.press("Enter")
        expect_order(page, ["two", "one", "three"])
    assert queue(on_stage, work) == ["two", "one", "three"]


def test_the_queue_is_ordered_by_dragging(on_stage: Stage) -> None:
    work = work_with(on_stage, "one", "two", "three")
    with on_stage.window() as window:
        page = window.page
        page.goto(f"/console/works/{work}")
        items = page.locator("[data-order] > li")
        items.nth(2).drag_to(items.nth(0), source_position={"x": 60, "y": 20}, target_position={"x": 60, "y": 4})
        expect(page.locator("#moved")).to_have_text("Moved to place 1 of 3")
        expect_order(page, ["three", "one", "two"])
        page.reload()
        expect_order(page, ["three", "one", "two"])
    assert queue(on_stage, work) == ["three", "one", "two"]


def test_what_others_do_shows_but_not_over_what_is_being_written(on_stage: Stage) -> None:
    work = work_with(on_stage, "one")
    with on_stage.window() as window:
        page = window.page
        page.goto(f"/console/works/{work}")
        window.is_live()
        assert on_stage.ask("steer_claim_next", work_id=work)["item"]["content"] == "one"
        expect(page.get_by_role("region", name="Claimed")).to_contain_text("one")
        page.get_by_role("button", name="Put back").click()
        expect_order(page, ["one"])
        window.is_live()
        page.locator("summary", has_text="Edit").click()
        box = page.locator("[data-order] textarea")
        box.fill("half a thou")
        with page.expect_response(f"**/console/works/{work}*"):  # the page has been fetched again
            on_stage.act(f"/operator/works/{work}/intents", body="another")
        expect(box).to_have_value("half a thou")
        expect(page.get_by_role("region", name="Drafts")).to_have_count(0)
        box.fill("one")
        page.locator("summary", has_text="Edit").click()  # it is closed, and what it held is as it was
        page.get_by_role("heading", level=1).click()
        expect(page.get_by_role("region", name="Drafts")).to_contain_text("another")


def test_a_work_is_stopped_and_its_commands_end(on_stage: Stage) -> None:
    work = work_with(on_stage)
    process = on_stage.ask("exec_command", workspace_id="free", command=["sleep", "600"])["process_id"]
    with on_stage.window() as window:
        page = window.page
        page.goto(f"/console/works/{work}")
        page.locator("summary", has_text="Stop this work").click()
        page.get_by_label("What the agent is told").fill("Wait for me.")
        page.get_by_role("button", name="Stop the work").click()
        expect(page.get_by_role("status").filter(has_text="Stopped")).to_be_visible()
        expect(page.get_by_role("region", name="Claimed")).to_contain_text("Wait for me.")
    while on_stage.ask("process_status", process_id=process)["state"] != "exited":
        pass
