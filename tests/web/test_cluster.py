"""The cluster's page, as a person uses it: why does my job wait, what is broken, what could start. The cluster is a recorded Slurm."""

from __future__ import annotations

import re
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from onward.operations.clusters.snapshot_cache import CachedSnapshot, snapshot_record
from tests.servers import Running
from tests.unit.test_cluster_page import LAB, recorded

LIST = {"clusters": [{"name": "lab", "scheduler": "slurm", "host": "login.example", "auto": True}]}


def told(**others: Any) -> dict[str, Any]:
    return {**snapshot_record(CachedSnapshot(cluster=LAB, snapshot=recorded(), age=3.0)), **others}


@pytest.fixture
def lab(page: Page) -> Page:
    page.route("**/api/v1/clusters", lambda route: route.fulfill(json=LIST))
    page.route(re.compile(r"/api/v1/clusters/lab"), lambda route: route.fulfill(json=told()))
    page.goto("/cluster")
    expect(page.get_by_role("heading", name="Queues")).to_be_visible()
    return page


def rows(page: Page) -> list[str]:
    return page.locator("table.jobs-table tbody tr").all_inner_texts()


def test_a_person_sees_why_a_job_waits_and_when_it_should_start(lab: Page) -> None:
    lab.get_by_role("searchbox", name="Search jobs").fill("big")
    expect(lab.locator("table.jobs-table tbody tr")).to_have_count(1)
    [row] = rows(lab)
    assert "next in the queue: waits until enough nodes, CPUs, memory or GPUs are free" in row
    assert "starts about" in row and "3 nodes" in row


def test_a_drained_node_says_why_on_the_map_and_under_it(lab: Page) -> None:
    node = lab.get_by_role("button", name=re.compile("^c2: drained"))
    expect(node).to_contain_text("bad DIMM, ticket 12")
    expect(lab.locator(".shut")).to_contain_text("drained: bad DIMM, ticket 12")


def test_a_queue_narrows_nodes_and_jobs_the_address_keeps_it_and_back_and_escape_undo_it(lab: Page) -> None:
    expect(lab.locator("table.jobs-table tbody tr")).not_to_have_count(0)
    everything = len(rows(lab))
    lab.get_by_role("button", name="gpu", exact=True).click()
    expect(lab.get_by_role("heading", name="Nodes of gpu")).to_be_visible()
    lab.get_by_role("button", name=re.compile("^g1:")).click()
    expect(lab).to_have_url(re.compile(r"/cluster\?queue=gpu&node=g1$"))
    expect(lab.locator("table.jobs-table tbody tr")).to_have_count(1)
    lab.reload()
    expect(lab.get_by_role("region", name="Node g1")).to_contain_text("2 of 2 allocated")
    lab.go_back()
    expect(lab.get_by_role("region", name="Node g1")).to_have_count(0)
    expect(lab.get_by_role("heading", name="Nodes of gpu")).to_be_visible()
    lab.keyboard.press("Escape")
    lab.wait_for_url("**/cluster")
    expect(lab.locator("table.jobs-table tbody tr")).to_have_count(everything)


def test_what_could_start_now_stands_by_its_queue_with_those_in_line(lab: Page) -> None:
    row = lab.get_by_role("row").filter(has=lab.get_by_role("button", name="gpu", exact=True))
    expect(row).to_contain_text("2 a100, 16 CPUs, 64 GiB")
    expect(row).to_contain_text("2 jobs ahead in the queue")


def test_an_old_picture_says_so_and_why(page: Page) -> None:
    page.route("**/api/v1/clusters", lambda route: route.fulfill(json=LIST))
    stale = told(age=240.0, trouble="squeue gave no answer within 25 s")
    page.route(re.compile(r"/api/v1/clusters/lab"), lambda route: route.fulfill(json=stale))
    page.goto("/cluster")
    expect(page.get_by_text("This snapshot may be out of date: squeue gave no answer within 25 s.")).to_be_visible()
    expect(page.get_by_text(re.compile("as of 4 min ago"))).to_be_visible()


def test_names_of_others_are_text_and_nothing_else(page: Page) -> None:
    hostile = '<img src=x onerror="document.title=1">\u202e' + "x" * 300
    jobs = [{**job, "name": hostile, "reason": hostile} for job in told()["jobs"]]
    page.route("**/api/v1/clusters", lambda route: route.fulfill(json=LIST))
    page.route(re.compile(r"/api/v1/clusters/lab"), lambda route: route.fulfill(json=told(jobs=jobs)))
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto("/cluster")
    expect(page.locator("table.jobs-table tbody tr")).to_have_count(len(jobs))
    assert page.locator("table.jobs-table img").count() == 0
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


def test_this_machine_is_shown_by_the_real_server(page: Page, server: Running) -> None:
    page.goto("/cluster?cluster=local")
    expect(page.get_by_text("processes outside the local queue are not counted")).to_be_visible()
    expect(page.locator(".map .node")).to_have_count(1)
    assert page.url.startswith(server.url)
