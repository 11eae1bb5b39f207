"""Tokens and experiments, and pages on which there is nothing yet, as a person uses them."""

from __future__ import annotations

import re
import time

import pytest
from playwright.sync_api import Browser, Page, expect

from onward.operations.tracker_access.location import open_tracker, tracker_location
from onward.tracker.access.tokens import Scope
from tests.servers import Running
from tests.web.browser import Watch, log_in, new_context
from tests.web.test_access import serious


def test_a_token_is_made_shown_once_works_and_is_revoked(page: Page, server: Running) -> None:
    page.goto("/tokens?new=1")
    page.get_by_label("Name").fill("notebook")
    page.get_by_label("Rights").select_option("Read only")
    page.get_by_role("button", name="Create token").click()
    secret = page.get_by_role("textbox", name="Token").input_value()
    asked = {"Authorization": f"Bearer {secret}"}
    assert page.request.get(f"{server.url}/api/v1/runs?limit=1", headers=asked).status == 200
    page.get_by_role("button", name="Done").click()
    row = page.get_by_role("row").filter(has_text="notebook")
    expect(row).to_contain_text("read")
    assert secret not in page.content()
    page.get_by_role("button", name="Revoke notebook").click()
    page.get_by_role("button", name="Yes, revoke it").click()
    expect(row).to_have_count(0)
    page.get_by_role("button", name=re.compile("All tokens")).click()
    expect(page).to_have_url(re.compile(r"/tokens\?all=1$"))
    expect(row).to_contain_text("revoked")
    assert serious(page) == []


def test_tokens_that_end_within_a_fortnight_are_marked(page: Page, server: Running) -> None:
    now = time.time()
    with open_tracker(tracker_location({}, server.db)) as opened:
        token, _ = opened.tokens.create(Scope.USER, name="old notebook", expires=now + 5 * 86400, now=now - 85 * 86400)
    page.goto("/tokens")
    expect(page.get_by_text("One token expires within 14 days")).to_be_visible()
    expect(page.get_by_role("row").filter(has_text="old notebook")).to_contain_text("(soon)")
    assert server.onward("token", "revoke", token.id).returncode == 0
    page.reload()
    expect(page.get_by_role("row").filter(has_text="old notebook")).to_have_count(0)
    expect(page.get_by_text("within 14 days")).to_have_count(0)


def test_one_who_is_no_admin_is_told_so(server: Running, browser: Browser) -> None:
    link = server.onward("token", "login", "--rights", "read").stdout.strip()
    context, watch = new_context(browser, server.url)
    watch.expected.add(403)
    page = context.new_page()
    log_in(page, link)
    page.goto("/tokens")
    expect(page.get_by_text("only an admin's token may do this")).to_be_visible()
    context.close()
    assert watch.wrong == []


def test_experiments_show_states_and_their_best_run_and_keep_what_one_writes_down(page: Page) -> None:
    page.goto("/experiments")
    row = page.get_by_role("row").filter(has_text="demo: digits")
    expect(row.get_by_role("link")).to_have_count(2)  # itself, and its best run
    expect(row).to_contain_text(re.compile(r"\d+ .*finished"))
    page.get_by_role("button", name="notes on demo: digits").click()
    page.get_by_label("Notes", exact=True).fill("which rate is best?\n<script>1</script>")
    page.get_by_role("button", name="Save").click()
    expect(row).to_contain_text("<script>1</script>")
    page.get_by_label("Which values are better").select_option("max")
    expect(page).to_have_url(re.compile("mode=max"))
    page.reload()
    expect(row).to_contain_text("which rate is best?")
    assert serious(page) == []
    row.get_by_role("link", name="demo: digits").click()
    expect(page.get_by_role("link", name=re.compile("^lr-")).first).to_be_visible()


def test_experiments_are_searched_and_none_says_so(page: Page) -> None:
    page.goto("/experiments")
    page.get_by_label("Search experiments").fill("no such")
    expect(page.get_by_text("No experiment matches")).to_be_visible()
    expect(page).to_have_url(re.compile(r"q=no\+such$"))


@pytest.mark.parametrize(("path", "words"), [("/pipelines", "There are no pipelines yet"), ("/requests", "There are no requests yet")])
def test_what_is_not_there_yet_says_what_will_be(page: Page, watched: tuple[Page, Watch], path: str, words: str) -> None:
    page.goto(path)
    expect(page.get_by_text(words)).to_be_visible()
    assert serious(page) == []
