"""A run's pages, as a person uses them: why it died and how it goes on, through legs, from its checkpoints; words and places kept."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.servers import Running
from tests.web.browser import Watch, log_in, new_context
from tests.web.test_access import serious
from tests.web.training import Started, start

SHOWN = {
    "": ".timeline svg",
    "/charts": ".chart",
    "/logs": ".log-line",
    "/system": ".system",
    "/checkpoints": ".ledger",
    "/files": ".files",
}
# where a box is scrolled to, once it has stopped
RESTED = """async (box) => {
  for (let before = -1; before !== box.scrollTop; ) {
    before = box.scrollTop;
    await new Promise((done) => setTimeout(done, 300));
  }
  return box.scrollTop;
}"""


@pytest.fixture(scope="module")
def token(server: Running) -> str:
    return server.token()


@pytest.fixture(scope="module")
def finished(server: Running, token: str, code: Path) -> Started:
    run = start(server, token, code, "done")
    run.until("finished")
    artifacts = run.dir / "results" / "artifacts"
    (artifacts / "plots").mkdir(parents=True, exist_ok=True)
    (artifacts / "<img src=x onerror=alert(1)>.html").write_text("<script>document.title = 'taken'</script>")
    (artifacts / "plots" / "dot.svg").write_text('<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"><circle r="4"/></svg>')
    return run


def open_run(page: Page, run: Started, tab: str = "", query: str = "") -> None:
    page.goto(f"{run.server.url}/runs/{run.id}{tab}{query}")
    expect(page.get_by_role("navigation", name="Parts of this run")).to_be_visible()


# ── what happens to it ────────────────────────────────────────────────────────


def test_why_a_run_died_is_found_and_it_is_resumed(page: Page, server: Running, token: str, code: Path) -> None:
    run = start(server, token, code, "dies", "needs-shard")
    run.until("failed")
    page.goto(server.url)
    page.get_by_role("link", name="dies", exact=True).click()
    cause = page.get_by_role("region", name="Why it is in this state")
    expect(cause).to_contain_text("exit code 1")
    expect(cause).to_contain_text("FileNotFoundError: no such shard: shard-00007")
    cause.get_by_role("link", name=re.compile("Errors of leg")).click()
    expect(page.locator(".log-line.bad").last).to_contain_text("no such shard: shard-00007")
    page.go_back()
    run.sign("shard")
    page.get_by_role("button", name="Resume").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("from its newest verified checkpoint, step 5")
    dialog.get_by_role("button", name="Resume").click()
    expect(page.locator(".run-title .badge")).to_have_text("finished")
    expect(page.get_by_role("region", name="Jobs", exact=True)).to_contain_text("done")
    told = run.until("finished")
    assert told["jobs"][-1]["resumed_step"] == 5 or told["jobs"][-2]["resumed_step"] == 5


def test_a_live_run_is_followed_through_a_leg_change_and_nothing_is_lost(page: Page, server: Running, token: str, code: Path) -> None:
    run = start(server, token, code, "lives", "hold", steps=200)
    run.until("running", step=199)
    open_run(page, run, "/logs")
    expect(page.get_by_role("button", name="Following")).to_be_visible()
    expect(page.locator(".log-line").last).to_contain_text("step 199")
    other = page.context.new_page()
    open_run(other, run, "/logs")
    expect(other.locator(".log-line").last).to_contain_text("step 199")
    other.locator(".log-box").hover()
    other.mouse.wheel(0, -1500)
    expect(other).to_have_url(re.compile(r"leg=1"))
    expect(other.get_by_role("button", name="Follow", exact=True)).to_be_visible()
    place = other.locator(".log-box").evaluate(RESTED)
    third = page.context.new_page()
    open_run(third, run, "", "?tzoom=4")
    timeline = third.get_by_role("group", name=re.compile("Timeline"))
    expect(timeline.get_by_role("link", name=re.compile(r"leg 1 on .*running"))).to_be_visible()

    run.sign("turn-1")
    expect(page.locator(".toasts")).to_contain_text("Leg 2 has started")  # first: it is shown for seconds only
    expect(page.locator(".log-line").first).to_contain_text("leg 2 goes on from step 195")
    expect(third.locator(".run-why")).to_contain_text("eg 2")
    expect(timeline.get_by_role("link", name=re.compile(r"leg 2 on .*running"))).to_be_attached()
    assert third.url.endswith("tzoom=4")
    assert other.locator(".log-box").evaluate("box => box.scrollTop") == place
    expect(other.locator(".log-line").first).to_contain_text("leg 1 goes on from step 0")

    page.get_by_role("button", name="Stop", exact=True).click()
    page.get_by_role("button", name="Stop after a checkpoint").click()
    expect(page.locator(".run-title .badge")).to_have_text("cancelled")
    assert run.overview()["run"]["checkpoint"]["step"] == 199


def test_a_cancel_says_what_is_lost_and_asks_first(page: Page, server: Running, token: str, code: Path) -> None:
    run = start(server, token, code, "unwanted", "hold", steps=8)
    run.until("running", step=7)
    open_run(page, run)
    page.get_by_role("button", name="Cancel", exact=True).click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("since the checkpoint of step 5 will be lost")
    page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)
    assert run.overview()["run"]["state"] == "running"
    page.keyboard.press("k")
    page.get_by_role("button", name="Cancel it now").click()
    expect(page.locator(".run-title .badge")).to_have_text("cancelled")
    expect(page.get_by_role("button", name="Resume")).to_be_visible()


def test_a_run_is_branched_from_one_of_its_checkpoints_with_another_param(page: Page, finished: Started) -> None:
    open_run(page, finished, "/checkpoints")
    row = page.get_by_role("row").filter(has=page.get_by_text("5", exact=True))
    expect(row).to_contain_text("persistent")
    expect(row).to_contain_text("one of the last 100")
    row.get_by_role("button", name="Branch from here").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("a copy of the checkpoint of step 5")
    dialog.get_by_label("Name").fill("branched")
    dialog.get_by_label("lr").fill("0.5")
    dialog.get_by_role("button", name="Show the job script").click()
    expect(dialog.locator("pre")).to_contain_text("supervisor")
    dialog.get_by_role("button", name="Branch", exact=True).click()
    expect(page.get_by_role("heading", level=1)).to_have_text("branched")
    expect(page.locator(".run-title .badge")).to_have_text("finished")
    params = page.get_by_role("region", name="Params")
    expect(params).to_contain_text("1 differ from done")
    expect(params.get_by_role("row", name=re.compile("lr"))).to_contain_text("0.1 → 0.5")
    page.get_by_role("link", name="Logs").click()
    expect(page.locator(".log-line").first).to_contain_text("goes on from step 5")


# ── what is read and written there ────────────────────────────────────────────


def test_the_timeline_is_walked_by_keys_and_leads_to_logs(page: Page, finished: Started) -> None:
    open_run(page, finished)
    timeline = page.get_by_role("group", name=re.compile("Timeline"))
    leg = timeline.get_by_role("link", name=re.compile(r"leg 1 on"))
    expect(leg).to_be_visible()
    timeline.get_by_role("link", name=re.compile("waited in the queue")).focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    expect(page.locator(".timeline-words")).not_to_contain_text("in the queue")
    leg.focus()
    expect(page.locator(".timeline-words")).to_contain_text("leg 1 on")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(r"/logs\?leg=1"))
    page.go_back()
    page.get_by_text("As a table").click()
    expect(page.get_by_role("row", name=re.compile("checkpoint of step 5")).last).to_be_visible()


def test_notes_and_tags_are_left_and_taken_back(page: Page, finished: Started) -> None:
    open_run(page, finished)
    page.get_by_label("New tag").fill("paper: table 2")
    page.keyboard.press("Enter")
    tags = page.get_by_role("region", name="Tags")
    expect(tags).to_contain_text("paper: table 2")
    page.get_by_label("New note").fill("<img src=x onerror=alert(1)> is only text")
    page.get_by_role("button", name="Add note").click()
    notes = page.get_by_role("region", name="Notes")
    expect(notes.get_by_role("listitem")).to_contain_text("<img src=x onerror=alert(1)> is only text")
    notes.get_by_role("button", name="Delete this note").click()
    expect(notes).to_contain_text("No notes yet")
    page.get_by_role("button", name="Undo").last.click()
    expect(notes).to_contain_text("is only text")
    tags.get_by_role("button", name="Remove tag paper").click()
    expect(tags).to_contain_text("No tags yet")


def test_files_are_looked_at_and_nothing_in_them_is_run(page: Page, finished: Started) -> None:
    open_run(page, finished, "/files")
    page.get_by_role("button", name="<img src=x onerror=alert(1)>.html").click()
    expect(page.get_by_role("figure")).to_contain_text("<script>document.title = 'taken'</script>")
    assert "taken" not in page.title()
    page.get_by_role("link", name="plots/").click()
    page.get_by_role("button", name="dot.svg").click()
    expect(page.get_by_role("img", name="dot.svg")).to_be_visible()
    page.reload()
    expect(page.get_by_role("img", name="dot.svg")).to_be_visible()
    with page.expect_download() as loaded:
        page.get_by_role("link", name="Download dot.svg").click()
    assert Path(loaded.value.path()).read_text().startswith("<svg")


def test_what_the_training_wrote_to_its_working_folder_is_paged_looked_at_and_downloaded(page: Page, finished: Started) -> None:
    code = finished.dir / "code"
    (code / "out").mkdir()
    (code / "out" / "loss.csv").write_text("epoch,loss")
    for number in range(450):
        (code / f"{number:03d}.bin").touch()
    open_run(page, finished, "/files")
    written = page.locator(".files-list", has=page.get_by_role("navigation", name="Folder of working folder"))
    expect(written.get_by_role("listitem")).to_have_count(200)
    expect(page.get_by_role("button", name="train.py")).to_have_count(0)
    expect(written.locator(".files-more")).to_contain_text("and 251 more")
    written.get_by_role("link", name="Next 200").click()
    page.get_by_role("link", name="Next 51").click()
    page.get_by_role("link", name="out/").click()
    page.get_by_role("button", name="loss.csv").click()
    expect(page.get_by_role("figure")).to_contain_text("epoch,loss")
    page.reload()
    expect(page.get_by_role("figure")).to_contain_text("epoch,loss")
    with page.expect_download() as loaded:
        page.get_by_role("link", name="Download loss.csv").click()
    assert Path(loaded.value.path()).read_text() == "epoch,loss"


def test_a_run_that_only_records_says_why_there_is_nothing(page: Page, server: Running, token: str) -> None:
    demo = server.json("GET", "/api/v1/runs?limit=1&filter=source%20!%3D%20'onward'", token)["runs"][0]["id"]
    for tab, words in (("logs", "only records its metrics"), ("checkpoints", "only records its metrics"), ("system", "only records")):
        page.goto(f"{server.url}/runs/{demo}/{tab}")
        expect(page.locator(".empty")).to_contain_text(words)
    page.goto(f"{server.url}/runs/{demo}/files")
    expect(page.locator(".empty")).to_contain_text("No files yet")


def test_a_run_that_is_not_there_is_said_so(watched: tuple[Page, Watch], link: str, server: Running) -> None:
    page, watch = watched
    log_in(page, link)
    watch.expect(404)
    page.goto(f"{server.url}/runs/nosuchrn")
    expect(page.locator(".empty")).to_contain_text("No run with id nosuchrn")


def test_hostile_names_are_only_names(server: Running, browser: Browser, link: str, token: str) -> None:
    name = "<script>document.title='taken'</script> \u202e" + "x" * 240
    asked = {"name": name, "experiment": "e" * 300, "params": {"p" * 200: "v" * 2000}, "tags": {"<b>": "\u202e" + "t" * 500}}
    run = server.json("POST", "/api/v1/runs", token, asked)["id"]
    context, watch = new_context(browser, server.url, width=390, height=844)
    page = context.new_page()
    log_in(page, link)
    page.goto(f"{server.url}/runs/{run}")
    expect(page.get_by_role("heading", level=1)).to_have_text(name)
    expect(page.get_by_role("region", name="Params")).to_contain_text("v" * 2000)
    assert not page.title().startswith("taken")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    context.close()
    assert watch.wrong == []


@pytest.mark.parametrize("tab", SHOWN)
def test_on_a_narrow_screen_no_tab_is_wider_than_it(server: Running, browser: Browser, link: str, finished: Started, tab: str) -> None:
    context, watch = new_context(browser, server.url, width=390, height=844, dark=True)
    page = context.new_page()
    log_in(page, link)
    open_run(page, finished, tab)
    expect(page.locator(SHOWN[tab]).first).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    context.close()
    assert watch.wrong == []


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_no_tab_and_no_dialog_has_a_serious_problem_for_anyone(
    server: Running, browser: Browser, link: str, finished: Started, dark: bool
) -> None:
    context, watch = new_context(browser, server.url, width=390 if dark else 1280, dark=dark)
    page = context.new_page()
    log_in(page, link)
    found = {}
    for tab, shown in SHOWN.items():
        open_run(page, finished, tab)
        expect(page.locator(shown).first).to_be_visible()
        found[tab] = serious(page)
    open_run(page, finished)
    page.get_by_role("button", name="Clone").click()
    expect(page.get_by_role("dialog")).to_be_visible()
    found["clone"] = serious(page)
    context.close()
    assert {tab: problems for tab, problems in found.items() if problems} == {}
    assert watch.wrong == []
