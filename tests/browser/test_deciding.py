"""Holds, undo, commands and the log, as the operator handles them in a real browser."""

import re
import unicodedata

from playwright.sync_api import expect

from codespace_es.vocabulary.visible_text import spelt_out
from support.browser import Stage, needs_chromium
from support.holds import ADD
from support.http_client import OPERATOR_TOKEN

pytestmark = needs_chromium


def held_patch(on_stage: Stage, path: str, text: str) -> str:
    told = on_stage.ask("apply_patch", workspace_id="held", patch=ADD.format(path=path, text=text))
    assert told["code"] == "APPROVAL_REQUIRED"
    return str(told["approval_id"])


def test_only_the_token_lets_in_and_logging_out_ends_it(on_stage: Stage) -> None:
    with on_stage.new_window() as window:
        page = window.page
        cookie = window.context.cookies()[0]
        assert (cookie["httpOnly"], cookie["sameSite"], cookie["path"]) == (True, "Strict", "/")
        assert page.evaluate("document.cookie") == ""
        key = page.evaluate("localStorage.getItem('codespace-operator-key')")
        assert len(key) > 40
        assert key not in page.content()
        page.get_by_role("button", name="Log out").click()
        page.wait_for_url("**/console/login")
        assert page.evaluate("localStorage.length") == 0
        page.goto("/console/works")
        page.get_by_label("Operator's token").fill(OPERATOR_TOKEN[:-1])
        page.keyboard.press("Enter")
        expect(page.get_by_role("alert")).to_contain_text("isn't the operator's token")
        window.faults.clear()  # the browser notes the answer 401
        page.get_by_label("Operator's token").fill(OPERATOR_TOKEN)
        page.keyboard.press("Enter")
        page.wait_for_url("**/console/works")


def test_a_preview_appears_by_itself_and_is_applied(on_stage: Stage) -> None:
    (on_stage.root("free") / "proposed.py").write_text("old_name\n")
    with on_stage.window() as window:
        page = window.page
        page.goto("/console/pending")
        window.is_live()
        ops = [{"pat": "old_name", "out": "new_name"}]
        on_stage.ask("ast_edit", workspace_id="free", ops=ops, paths=["proposed.py"])
        page.get_by_role("link", name="AST Edit").click()
        expect(page.get_by_role("region", name="Diff")).to_contain_text("+new_name")
        page.get_by_label("Reason").fill("Looks right.")
        page.get_by_role("button", name="Apply").click()
        expect(page.get_by_role("status").filter(has_text="Applied, as this operation")).to_be_visible()
    assert (on_stage.root("free") / "proposed.py").read_text() == "new_name\n"
    assert on_stage.look("/operator/pending") == []


def test_a_hold_appears_by_itself_and_what_is_granted_can_run(on_stage: Stage) -> None:
    with on_stage.window() as window:
        page = window.page
        window.is_live()
        held = held_patch(on_stage, "granted.txt", "granted")
        page.get_by_role("link", name="Patch granted.txt").click()
        expect(page.get_by_role("region", name="Diff")).to_contain_text("+granted")
        page.get_by_label("Reason").fill("Looks right.")
        page.get_by_role("button", name="Grant").click()
        expect(page.get_by_role("status").filter(has_text="Granted.")).to_be_visible()
        window.is_live()
        assert on_stage.ask("operation_resume", approval_id=held)["state"] == "consumed"
        assert (on_stage.root("held") / "granted.txt").read_text() == "granted\n"
        expect(page.locator("#hold")).to_contain_text("consumed")
        expect(page.locator("#hold")).to_contain_text("Looks right.")
    told = on_stage.look(f"/operator/approvals/{held}")
    assert (told["decided_by"], told["reason"]) == ("web", "Looks right.")


def test_a_hold_is_denied_by_keyboard_alone(on_stage: Stage) -> None:
    held = held_patch(on_stage, "denied.txt", "denied")
    with on_stage.window() as window:
        page = window.page
        page.goto(f"/console/approvals/{held}")
        page.get_by_label("Reason").focus()
        page.keyboard.type("No.")
        page.keyboard.press("Tab")
        page.keyboard.press("Tab")
        expect(page.get_by_role("button", name="Deny")).to_be_focused()
        page.keyboard.press("Enter")
        expect(page.get_by_role("status").filter(has_text="Denied")).to_be_visible()
    assert on_stage.look(f"/operator/approvals/{held}")["state"] == "denied"


def test_without_its_key_a_browser_only_looks(on_stage: Stage) -> None:
    """Whoever has got hold of the cookie has no key."""
    held = held_patch(on_stage, "stolen.txt", "stolen")
    with on_stage.new_window() as window:
        page = window.page
        page.evaluate("localStorage.clear()")
        page.goto(f"/console/approvals/{held}")
        page.get_by_role("button", name="Grant").click()
        expect(page.get_by_role("heading", level=1)).to_have_text("Nothing was changed")
        window.faults.clear()  # the browser notes the answer 403
    assert on_stage.look(f"/operator/approvals/{held}")["state"] == "pending"


def test_an_operation_is_undone_after_a_look_at_what_that_would_do(on_stage: Stage) -> None:
    patch = ADD.format(path="undone.txt", text="undone")
    done = on_stage.ask("apply_patch", workspace_id="free", patch=patch)["operation_id"]
    file = on_stage.root("free") / "undone.txt"
    with on_stage.window() as window:
        page = window.page
        page.goto("/console")
        page.locator(f"a[href='/console/operations/{done}']").first.click()
        expect(page.get_by_role("region", name="Diff of undone.txt")).to_contain_text("+undone")
        page.get_by_role("button", name="Undo…").click()
        expect(page.get_by_role("region", name="Diff")).to_contain_text("-undone")
        assert file.exists()
        page.get_by_role("button", name="Undo it").click()
        expect(page.get_by_role("status").filter(has_text="Undone")).to_be_visible()
    assert not file.exists()
    assert "reverted_by" in on_stage.look(f"/operator/operations/{done}")["report"]


def test_output_comes_as_it_is_printed_and_the_command_can_be_ended(on_stage: Stage) -> None:
    go = on_stage.root("free") / "go"
    text = f"echo one; while [ ! -e {go} ]; do sleep 0.05; done; printf '\\033[31mtwo\\033[0m \\a\\n'; sleep 600"
    process = on_stage.ask("exec_command", workspace_id="free", command=["sh", "-c", text])["process_id"]
    with on_stage.window() as window:
        page = window.page
        page.goto(f"/console/processes/{process}")
        output = page.get_by_role("log", name="Output")
        expect(output).to_have_text("one\n")
        go.touch()
        expect(output).to_have_text("one\ntwo \\x07\n")
        window.is_live()
        page.locator("summary", has_text="End it").click()
        page.get_by_role("button", name="End it").click()
        expect(page.locator("#process")).to_contain_text("terminated")


def test_what_comes_later_is_spelt_out_as_the_server_does(on_stage: Stage) -> None:
    planes = [*range(0x11000), *range(0x1F300, 0x1F700), *range(0xE0000, 0xE0200)]
    text = "".join(chr(code) for code in planes if unicodedata.category(chr(code)) not in ("Cn", "Cs"))
    with on_stage.window() as window:
        window.page.goto("/console/processes")
        shown = window.page.evaluate("text => Array.from(text, plain)", text)
        wanted = [spelt_out(sign, kept="\n\t") for sign in text]
        assert [told for told in zip(text, shown, wanted, strict=True) if told[1] != told[2]] == []


def test_a_colour_that_comes_in_two_pieces_is_one(on_stage: Stage) -> None:
    names = [on_stage.root("free") / name for name in ("first", "second")]
    waits = [f"while [ ! -e {name} ]; do sleep 0.05; done" for name in names]
    text = f"{waits[0]}; printf 'one\\033[3'; {waits[1]}; printf '1mtwo\\033[0m\\n'; sleep 600"
    process = on_stage.ask("exec_command", workspace_id="free", command=["sh", "-c", text])["process_id"]
    with on_stage.window() as window:
        window.page.goto(f"/console/processes/{process}")
        output = window.page.get_by_role("log", name="Output")
        names[0].touch()
        expect(output).to_have_text("one")
        names[1].touch()
        expect(output).to_have_text("onetwo\n")
    on_stage.ask("terminate_process", process_id=process)


def test_the_slider_tells_the_state_of_any_moment_and_new_events_come_by_themselves(on_stage: Stage) -> None:
    on_stage.ask("work_open", workspace_id="free", title="a work for the timeline")
    with on_stage.window() as window:
        page = window.page
        page.goto("/console/timeline")
        window.is_live()
        expect(page.locator("#entries")).to_contain_text("a work for the timeline")
        slider = page.get_by_role("slider", name="Position")
        slider.focus()
        page.keyboard.press("Home")
        expect(page.locator("#state")).to_contain_text("Before the first event.")
        page.keyboard.press("ArrowRight")
        expect(page.locator("#state")).to_contain_text("store.created.v1")
        assert page.url.endswith("position=1")
        on_stage.ask("work_open", workspace_id="free", title="a second work for the timeline")
        expect(page.locator("#entries")).to_contain_text("a second work for the timeline")
        expect(page.locator("#state")).to_contain_text("store.created.v1")
        page.get_by_label("Topic").fill("store.created")
        page.get_by_role("button", name="Show").click()
        expect(page.locator("#entries li")).to_have_count(1)


def test_the_log_is_verified_on_demand(on_stage: Stage) -> None:
    with on_stage.window() as window:
        page = window.page
        page.get_by_role("link", name="Verification").first.click()
        page.get_by_role("button", name="Verify now").click()
        expect(page.locator(".verdict")).to_contain_text(re.compile("whole and unchanged"))
