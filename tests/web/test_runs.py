"""The list of runs and the form for a new one, as a person uses them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.servers import Running
from tests.web.browser import Watch, log_in, new_context


def rows(page: Page) -> list[str]:
    page.wait_for_selector(".table-row:not(.waiting) .cell a")
    return page.locator(".table-body .cell a").all_inner_texts()


def one(page: Page, name: str) -> str:
    """The id of the first run of that name in the list."""
    address = page.locator(".table-body .cell a", has_text=name).first.get_attribute("href")
    assert address
    return address.rpartition("/")[2]


# ── coming in ─────────────────────────────────────────────────────────────────


def test_a_browser_without_a_login_is_told_how_to_come_in(watched: tuple[Page, Watch]) -> None:
    page, watch = watched
    watch.expect(401)
    page.goto("/")
    expect(page.get_by_text("onward token login")).to_be_visible()
    assert page.locator("h1").evaluate("e => getComputedStyle(e).fontSize") == "18px"  # its style is let in


def test_a_link_logs_in_once(server: Running, browser: Browser, watched: tuple[Page, Watch], link: str) -> None:
    page, _ = watched
    log_in(page, link)
    expect(page.get_by_role("grid", name="Runs")).to_be_visible()
    context, watch = new_context(browser, server.url)
    watch.expect(401)
    second = context.new_page()
    second.goto(link)
    expect(second.get_by_text("already used")).to_be_visible()
    context.close()
    assert watch.wrong == []


def test_a_pasted_token_leads_to_the_view_that_was_asked_for(server: Running, watched: tuple[Page, Watch]) -> None:
    page, watch = watched
    watch.expect(401)
    page.goto("/?state=failed&sort=name")
    page.get_by_label("Or paste a token").fill(server.token())
    page.get_by_role("button", name="Log in").click()
    page.wait_for_url("**/?state=failed&sort=name")
    assert rows(page) == ["lr-0.1"]


def test_under_a_prefix_everything_is_found_there(browser: Browser, tmp_path: Path) -> None:
    with Running(tmp_path, "--demo-data", "--root-path", "/lab") as server:
        context, watch = new_context(browser, server.url)
        page = context.new_page()
        log_in(page, server.link)
        page.get_by_role("link", name="lr-0.01").first.click()
        expect(page).to_have_url(re.compile(r"/lab/runs/\w+$"))
        page.reload()
        page.get_by_role("link", name="Runs", exact=True).click()
        expect(page).to_have_url(re.compile(r"/lab/$"))
        assert len(rows(page)) == 10
        context.close()
    assert watch.wrong == []


def test_where_there_are_no_runs_the_page_says_where_the_server_looks(browser: Browser, tmp_path: Path) -> None:
    with Running(tmp_path) as server:
        context, watch = new_context(browser, server.url)
        page = context.new_page()
        log_in(page, server.link)
        expect(page.get_by_text("There are no runs yet")).to_be_visible()
        expect(page.get_by_text(f"The server looks for runs in {server.env['ONWARD_ROOT']}")).to_be_visible()
        context.close()
    assert watch.wrong == []


# ── the list ──────────────────────────────────────────────────────────────────


def test_the_list_says_state_why_and_how_far(page: Page) -> None:
    assert len(rows(page)) == 10
    failed = page.get_by_role("row", name="failed")
    expect(failed).to_contain_text("the loss became NaN at step 1,201")
    expect(failed.get_by_role("progressbar")).to_have_attribute("aria-valuenow", "70")
    expect(page.locator(".spark svg").first).to_be_visible()


def test_folders_that_cannot_be_read_are_named_with_their_reasons(page: Page) -> None:
    rows(page)
    expect(page.get_by_text("cannot be read")).to_have_count(0)
    told = [
        {"folder": "/runs/2026-11-15_A_spoiled", "reason": "params/spec.json is not a valid spec: it has no 'command'", "since": 1.7e9},
        {"folder": "/runs/2026-11-15_B_copy", "reason": "that run is in /runs/2026-11-15_A_digits", "since": 1.7e9},
    ]
    page.route("**/api/v1/trouble/folders", lambda route: route.fulfill(json={"folders": told}))
    page.reload()
    page.get_by_text("2 folders cannot be read").click()
    for one in told:
        expect(page.get_by_text(str(one["folder"]), exact=True)).to_be_visible()
        expect(page.get_by_text(str(one["reason"]))).to_be_visible()
    assert len(rows(page)) == 10


def test_a_filter_is_in_the_address_and_back_undoes_a_step(page: Page) -> None:
    rows(page)
    page.get_by_role("button", name="finished 5").click()
    expect(page.locator(".table-body .cell a")).to_have_count(5)
    page.keyboard.press("/")
    page.keyboard.type("params.lr > 0.02")
    page.keyboard.press("Enter")
    expect(page.locator(".table-body .cell a")).to_have_count(2)
    expect(page).to_have_url(re.compile(r"state=finished.*q=params\.lr|q=params\.lr.*state=finished"))
    page.get_by_role("columnheader", name="Name").get_by_role("button").click()
    expect(page).to_have_url(re.compile(r"sort=name"))
    page.go_back()
    expect(page).not_to_have_url(re.compile(r"sort=name"))
    expect(page.get_by_role("combobox", name="Filter runs")).to_have_value("params.lr > 0.02")
    page.reload()
    expect(page.locator(".table-body .cell a")).to_have_count(2)


def test_words_that_are_no_filter_are_searched_for_and_the_page_says_so(page: Page) -> None:
    box = page.get_by_role("combobox", name="Filter runs")
    box.fill("language 0.003")
    expect(page.locator(".table-body .cell a")).to_have_count(1)
    expect(page.get_by_text("searched as text")).to_be_visible()


def test_a_filter_with_a_slip_is_told_and_the_list_stays(watched: tuple[Page, Watch], link: str) -> None:
    page, watch = watched
    watch.expect(400)
    log_in(page, link)
    rows(page)
    page.get_by_role("combobox", name="Filter runs").fill("lr < 3")
    expect(page.get_by_role("alert")).to_contain_text("unknown name 'lr'")
    assert len(rows(page)) == 10


def test_the_filter_is_completed_from_what_runs_have(page: Page) -> None:
    box = page.get_by_role("combobox", name="Filter runs")
    box.press_sequentially("params.b")
    expect(page.get_by_role("option", name="params.batch_size")).to_be_visible()
    box.press("Tab")
    expect(box).to_have_value("params.batch_size ")
    box.press_sequentially("= ")
    expect(page.get_by_role("option").first).to_have_text(re.compile("128|32|64"))


def test_tab_goes_through_the_filter_and_out_of_the_params_file(page: Page) -> None:
    rows(page)
    box = page.get_by_role("combobox", name="Filter runs")
    page.get_by_role("button", name="Keyboard shortcuts").focus()
    page.keyboard.press("Tab")
    expect(box).to_be_focused()
    expect(page.get_by_role("option").first).to_be_visible()
    page.keyboard.press("Tab")
    expect(page.get_by_role("button", name="Group")).to_be_focused()
    expect(box).to_have_value("")
    page.get_by_role("link", name="New run").click()
    file = page.get_by_role("textbox", name="params.yaml")
    file.focus()
    page.keyboard.press("Tab")
    expect(file).to_be_focused()  # it indents
    page.keyboard.press("Escape")
    page.keyboard.press("Tab")
    expect(file).not_to_be_focused()


def test_columns_are_chosen_moved_and_sized_and_stay_in_the_address(page: Page) -> None:
    rows(page)
    page.get_by_role("button", name="Columns").click()
    page.get_by_label("Find a column").fill("lr")
    page.get_by_label("lr param").check()
    page.keyboard.press("Escape")
    head = page.get_by_role("columnheader", name="lr", exact=True)
    expect(head).to_be_visible()
    head.get_by_role("button").focus()
    page.keyboard.press("Shift+ArrowLeft")
    page.keyboard.press("Alt+ArrowRight")
    expect(page).to_have_url(re.compile(r"params\.lr@126"))
    titles = page.get_by_role("columnheader").all_inner_texts()
    assert titles.index("lr") < titles.index("Created")
    page.reload()
    expect(page.get_by_role("columnheader", name="lr", exact=True)).to_be_visible()


def test_runs_are_grouped_and_a_group_opens(page: Page) -> None:
    rows(page)
    page.get_by_role("button", name="Group").click()
    page.get_by_role("button", name="experiment").click()
    group = page.get_by_role("button", name=re.compile("demo: digits"))
    group.click()
    expect(page.locator(".table-body .cell a")).to_have_count(5)
    page.reload()
    expect(page.locator(".table-body .cell a")).to_have_count(5)
    page.go_back()
    expect(page.locator(".table-body .cell a")).to_have_count(10)


def test_selected_runs_are_tagged_together(page: Page) -> None:
    rows(page)
    page.keyboard.press("j")
    page.keyboard.press("x")
    page.keyboard.press("j")
    page.keyboard.press("j")
    page.keyboard.press("X")
    expect(page.get_by_text("3 selected")).to_be_visible()
    page.keyboard.press("t")
    page.get_by_label("Tag", exact=True).fill("paper")
    page.get_by_role("dialog").get_by_role("button", name="Tag").click()
    expect(page.locator(".tag", has_text="paper")).to_have_count(3)
    page.goto("/?q=tags.paper is not null")
    assert len(rows(page)) == 3


def test_an_archived_run_leaves_the_list_and_undo_brings_it_back(page: Page) -> None:
    page.goto("/?state=cancelled")
    assert rows(page) == ["lr-0.03"]
    page.get_by_label("Select lr-0.03").check()
    page.get_by_role("button", name="Archive", exact=True).click()
    page.get_by_role("button", name="Undo").click()
    expect(page.get_by_text("back in the list")).to_be_visible()
    page.goto("/?state=cancelled")
    assert rows(page) == ["lr-0.03"]


def test_selected_runs_are_taken_to_the_comparison(page: Page) -> None:
    rows(page)
    first, second = one(page, "lr-0.001"), one(page, "lr-0.1")
    page.get_by_label("Select lr-0.001").first.check()
    page.get_by_label("Select lr-0.1").first.check()
    page.get_by_role("toolbar", name="Selected runs").get_by_role("button", name="Compare").click()
    expect(page).to_have_url(re.compile(rf"/compare\?runs={first},{second}"))


def test_a_view_is_kept_by_name_and_shared_by_its_address(server: Running, browser: Browser, page: Page) -> None:
    page.goto("/?state=finished&sort=name&cols=name,state,params.lr")
    rows(page)
    page.get_by_role("button", name="Views").click()
    page.get_by_label("Name of this view").fill("what is done")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("View saved as")).to_be_visible()
    page.goto("/")
    page.get_by_role("button", name="Views").click()
    page.get_by_role("link", name="what is done").click()
    expect(page.locator(".table-body .cell a")).to_have_count(5)
    seen = rows(page)
    context, watch = new_context(browser, server.url)
    other = context.new_page()
    log_in(other, server.onward("token", "login").stdout.strip())
    other.goto(page.url)
    expect(other.locator(".table-body .cell a")).to_have_count(5)
    assert rows(other) == seen
    assert other.get_by_role("columnheader").all_inner_texts() == page.get_by_role("columnheader").all_inner_texts()
    context.close()
    assert watch.wrong == []


def test_a_change_shows_without_a_reload_and_new_runs_wait_to_be_asked_for(server: Running, page: Page) -> None:
    assert len(rows(page)) >= 10
    token = server.token()
    made = server.json("POST", "/api/v1/runs", token, {"experiment": "live", "name": "a fresh one"})
    page.get_by_role("button", name="1 new run").click()
    expect(page.locator(".table-body .cell a").first).to_have_text("a fresh one")
    server.json("PATCH", f"/api/v1/runs/{made['id']}", token, {"state": "failed", "reason": "it was only a test"})
    first = page.get_by_role("row", name="a fresh one")
    expect(first).to_contain_text("failed")
    expect(first).to_contain_text("it was only a test")
    server.json("PATCH", f"/api/v1/runs/{made['id']}", token, {"archived": True})


def test_of_many_runs_only_those_in_view_are_read_and_drawn(server: Running, page: Page) -> None:
    token = server.token()
    made = [server.json("POST", "/api/v1/runs", token, {"experiment": "many", "name": f"{number:03}"})["id"] for number in range(230)]
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.post_data or "") if request.url.endswith("/runs/search") else None)
    page.goto("/?q=experiment = many&sort=name")
    assert rows(page)[0] == "000"
    assert len(rows(page)) < 60
    pages = [body for body in asked if "experiment = many" in body and '"limit":100' in body]
    assert len(pages) == 1, asked  # the others look for new runs, and for what changed in those that are shown
    page.keyboard.press("End")
    expect(page.locator(".table-body .cell a").last).to_have_text("229")
    assert len(rows(page)) < 60
    page.locator(".table-line.current a").click()
    page.wait_for_url("**/runs/*")
    page.go_back()
    expect(page.get_by_role("link", name="229")).to_be_visible()
    for id in made:
        server.json("PATCH", f"/api/v1/runs/{id}", token, {"archived": True})


def test_names_are_text_whatever_they_hold(server: Running, page: Page) -> None:
    token = server.token()
    names = ["<script>alert(1)</script>", "\u202etxt.exe", "x" * 300, "a'b\"c`d"]
    made = [server.json("POST", "/api/v1/runs", token, {"experiment": "odd <b>", "name": name})["id"] for name in names]
    page.goto("/?q=experiment = 'odd <b>'&group=experiment&open=%3Dodd <b>")
    expect(page.locator(".table-body .cell a")).to_have_count(4)
    assert sorted(page.locator(".table-body .cell a").all_inner_texts()) == sorted(names)
    for id in made:
        server.json("PATCH", f"/api/v1/runs/{id}", token, {"archived": True})


def test_no_runs_says_why_and_offers_a_way_on(page: Page) -> None:
    page.goto("/?q=params.lr > 100")
    expect(page.get_by_text("No run matches")).to_be_visible()
    page.get_by_role("button", name="Show all runs").click()
    assert len(rows(page)) >= 10


def test_the_keys_of_the_page_are_on_a_sheet(page: Page) -> None:
    rows(page)
    page.keyboard.press("?")
    sheet = page.get_by_role("dialog", name="Keyboard shortcuts")
    expect(sheet.get_by_text("Next run")).to_be_visible()
    page.keyboard.press("Escape")
    expect(sheet).to_be_hidden()
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(r"/runs/\w+$"))
    page.keyboard.press("g")
    page.keyboard.press("r")
    expect(page.get_by_role("grid", name="Runs")).to_be_visible()


def test_on_a_narrow_screen_runs_are_cards_and_nothing_overflows(server: Running, browser: Browser, link: str) -> None:
    context, watch = new_context(browser, server.url, width=390, height=844)
    page = context.new_page()
    log_in(page, link)
    expect(page.locator(".card")).not_to_have_count(0)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    context.close()
    assert watch.wrong == []


# ── a new run ─────────────────────────────────────────────────────────────────


@pytest.fixture
def new(page: Page) -> Page:
    page.goto("/new")
    expect(page.get_by_label("params.yaml")).to_have_value(re.compile("name: my-run"))
    return page


def test_form_and_file_are_kept_in_step(new: Page) -> None:
    new.get_by_label("Name", exact=True).fill("letters")
    expect(new.get_by_label("params.yaml")).to_have_value(re.compile(r"^name: letters\n"))
    file = new.get_by_label("params.yaml")
    file.fill(file.input_value().replace("lr: 0.001", "lr: 0.5  # high"))
    expect(new.get_by_label("lr", exact=True)).to_have_value("0.5")
    new.get_by_label("Memory per node").fill("16G")
    expect(file).to_have_value(re.compile(r"lr: 0\.5  # high\n.*mem: 16G", re.DOTALL))


def test_what_is_wrong_is_told_at_its_field_and_its_line(new: Page) -> None:
    new.get_by_label("Time limit of a leg").fill("soon")
    expect(new.get_by_text("1 problem")).to_be_visible()
    expect(new.locator(".field .wrong")).to_be_visible()
    expect(new.locator(".editor-lines .wrong")).to_have_text("10")
    expect(new.get_by_role("button", name="Start the run")).to_be_disabled()


def test_a_new_run_begins_with_a_params_file_of_the_folder_or_with_the_usual_one(server: Running, code: Path, page: Page) -> None:
    (code / "wide.yaml").write_text("name: wide\ntrain:\n  command: python3 train.py\n")
    page.goto("/new")
    page.get_by_role("button", name="Start from").click()
    page.get_by_role("button", name="wide.yaml").click()
    expect(page.get_by_label("params.yaml")).to_have_value(re.compile("^name: wide"))
    expect(page.get_by_label("Command")).to_have_value("python3 train.py")
    page.get_by_role("button", name="Start from").click()
    page.get_by_role("button", name="A new file").click()
    expect(page.get_by_label("params.yaml")).to_have_value(re.compile("^name: my-run"))


def test_a_run_is_started_from_the_form(server: Running, code: Path, new: Page) -> None:
    new.get_by_label("Name", exact=True).fill("from-the-form")
    new.get_by_label("Cluster").select_option("local")
    new.get_by_label("Command").fill("python3 train.py")
    new.get_by_label("CPUs per task").fill("1")
    new.get_by_label("Memory per node").fill("64M")
    expect(new.get_by_label("Code folder")).to_have_value(str(code))
    expect(new.get_by_text("Ready to start")).to_be_visible()
    new.get_by_role("tab", name="Job script").click()
    expect(new.locator(".script pre")).to_contain_text("#!")
    new.get_by_role("button", name="Start the run").click()
    expect(new).to_have_url(re.compile(r"/runs/\w+$"))
    id = new.url.rpartition("/")[2]
    run = server.json("GET", f"/api/v1/runs/{id}", server.token())
    assert (run["name"], run["source"], run["cluster"]) == ("from-the-form", "onward", "local")


def test_one_who_ran_onward_up_starts_a_run_without_a_settings_file_and_clones_it(tmp_path: Path, browser: Browser) -> None:
    project = tmp_path / "project"
    project.mkdir()
    (project / "train.py").write_text("print('trained')\n")
    with Running(tmp_path / "up") as own:
        context, watch = new_context(browser, own.url)
        page = context.new_page()
        log_in(page, own.link)
        done = own.onward("submit", "--cluster", "local", "--", "python3", "train.py", cwd=project)
        assert done.returncode == 0, done.stderr
        page.goto("/new")
        page.get_by_label("Name", exact=True).fill("by-hand")
        page.get_by_label("Cluster").select_option("local")
        page.get_by_label("Command").fill("python3 train.py")
        page.get_by_label("CPUs per task").fill("1")
        page.get_by_label("Memory per node").fill("64M")
        expect(page.get_by_label("Code folder")).to_have_value(str(project))
        page.get_by_role("button", name="Start the run").click()
        expect(page).to_have_url(re.compile(r"/runs/\w+$"))
        page.goto("/new")
        page.get_by_role("button", name="Start from").click()
        page.get_by_role("link", name="by-hand").click()
        expect(page.get_by_role("dialog", name="Clone by-hand")).to_be_visible()
        page.get_by_role("button", name="Cancel").last.click()
        expect(page).to_have_url(re.compile(r"/runs/\w+$"))
        context.close()
        assert watch.wrong == []


def test_one_who_came_by_anothers_link_is_told_in_one_sentence_what_to_do(tmp_path: Path, browser: Browser) -> None:
    with Running(tmp_path / "up") as own:
        context, _ = new_context(browser, own.url)
        page = context.new_page()
        log_in(page, own.onward("token", "login", "--name", "bea").stdout.strip())
        page.goto("/new")
        expect(page.get_by_role("note")).to_have_text(re.compile("^No folder can be used yet. Log in with the link that onward up"))
        context.close()
