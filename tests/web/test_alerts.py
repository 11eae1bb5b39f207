"""The page of alerts as a person uses it: a channel that is tested, a rule, a notice that arrives; and what goes wrong says so."""

from __future__ import annotations

import json
import re

from playwright.sync_api import Page, expect

from tests.receivers import hooks
from tests.web.browser import Watch
from tests.web.test_access import serious


def make_channel(page: Page, name: str, url: str) -> None:
    page.goto("/alerts")
    page.get_by_role("button", name="New channel").click()
    page.get_by_label("Name").fill(name)
    page.get_by_label("Address").fill(url)
    page.get_by_role("button", name="Create channel").click()
    expect(page.get_by_role("row").filter(has_text=name)).to_be_visible()


def test_a_channel_is_made_and_tested_a_rule_tells_and_the_history_says_so(page: Page) -> None:
    with hooks() as kept:
        make_channel(page, "ops", f"{kept.url}/very-secret")
        assert "very-secret" not in page.content()
        page.get_by_role("button", name="Test ops").click()
        expect(page.get_by_text("the test was delivered")).to_be_visible()
        assert json.loads(kept.posts[0][2])["text"].startswith("Onward can reach this channel")
        page.get_by_role("button", name="New rule").click()
        expect(page).to_have_url(re.compile(r"/alerts\?rule=new$"))
        page.get_by_label("Notify when").select_option("The disk is nearly full")
        page.get_by_label("Used (percent)").fill("0.000001")
        page.get_by_label("Name").fill("disk")
        expect(page.get_by_role("checkbox", name="ops")).to_be_checked()
        page.get_by_role("button", name="Create rule").click()
        rule = page.get_by_role("row").filter(has_text="disk usage of the runs folder reaches")
        expect(rule).to_contain_text("ops")
        sent = page.get_by_role("row").filter(has_text=re.compile("the disk of .* full"))
        expect(sent.filter(has_text="pending").or_(sent.filter(has_text="sent")).first).to_be_visible()
        rule.get_by_role("button", name="Disable").click()
        expect(rule).to_contain_text("disabled")
        page.reload()
        expect(rule).to_contain_text("disabled")
        assert serious(page) == []


def test_a_test_that_does_not_arrive_and_a_filter_that_is_none_say_why(page: Page, watched: tuple[Page, Watch]) -> None:
    with hooks() as kept:
        make_channel(page, "broken", kept.url)
        kept.answers = [(404, {})]
        page.get_by_role("button", name="Test broken").click()
        expect(page.get_by_text("the test was not delivered: 127.0.0.1 answered 404")).to_be_visible()
    watched[1].expected.add(400)
    page.keyboard.press("n")
    page.get_by_label("Notify when").select_option("A condition is met")
    page.get_by_role("textbox", name="Condition").fill("metrics.loss >")
    page.get_by_role("button", name="Create rule").click()
    expect(page.get_by_role("dialog").get_by_role("alert")).to_contain_text("expected a value")
    assert serious(page) == []
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    page.once("dialog", lambda dialog: dialog.accept())
    page.get_by_role("button", name="Delete broken").click()
    expect(page.get_by_role("button", name="Delete broken")).to_have_count(0)


def test_the_key_of_a_webhook_is_shown_once_and_quiet_hours_are_kept(page: Page) -> None:
    page.goto("/alerts?channel=new")
    page.get_by_label("Kind").select_option("Signed webhook")
    page.get_by_label("Name").fill("hook")
    page.get_by_label("Address").fill("http://127.0.0.1:9/in")
    page.get_by_label("Quiet hours").check()
    page.get_by_label("From").fill("23:00")
    page.get_by_role("button", name="Create channel").click()
    expect(page.get_by_role("textbox", name="Signing key")).to_have_value(re.compile("^whsec_"))
    page.get_by_role("button", name="Done").click()
    row = page.get_by_role("row").filter(has_text="hook")
    expect(row).to_contain_text("23:00–07:00")
    row.get_by_role("button", name="Edit hook").click()
    expect(page.get_by_label("Address")).to_have_value("")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("dialog")).to_have_count(0)
