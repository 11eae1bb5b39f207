"""Alerts over HTTP: rules are anyone's who may write, channels an admin's; what is secret goes in and never comes out."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from onward.api.background import chores
from onward.tracker.access.tokens import Rights, Scope
from tests.databases import tracker_in
from tests.receivers import hooks
from tests.unit.test_api_routes import Harness, good

CHANNELS, RULES = "/api/v1/alerts/channels", "/api/v1/alerts/rules"
MAIL = {"kind": "email", "name": "mail", "host": "smtp.lab.org", "sender": "a@lab.org", "to": ["b@lab.org"]}


@pytest.fixture
def harness(tmp_path: Path) -> Iterator[Harness]:
    with tracker_in(tmp_path) as opened:
        yield Harness(tmp_path, opened)


def test_a_channel_is_made_changed_and_deleted_and_never_tells_its_secrets(harness: Harness, tmp_path: Path) -> None:
    address = "https://hooks.slack.test/services/T0/B0/very-secret"
    made = good(harness.client.post(CHANNELS, {"kind": "slack", "name": "ops", "url": address}), 201)["channel"]
    assert (made["kind"], made["target"], made["ready"], made["quiet"]) == ("slack", {"host": "hooks.slack.test"}, True, None)
    quiet = {"begins": "22:00", "ends": "07:00", "zone": "Europe/Berlin"}
    changed = good(harness.client.ask("PUT", f"{CHANNELS}/{made['id']}", json={"kind": "slack", "name": "night", "quiet": quiet}))[
        "channel"
    ]
    assert (changed["name"], changed["quiet"], changed["ready"], changed["created"]) == ("night", quiet, True, made["created"])
    secrets = tmp_path / "tracker.secrets"
    assert (address in secrets.read_text(), secrets.stat().st_mode & 0o777) == (True, 0o600)
    assert "very-secret" not in harness.client.get(CHANNELS).text
    assert b"very-secret" not in (tmp_path / "tracker.db").read_bytes()
    assert harness.client.ask("DELETE", f"{CHANNELS}/{made['id']}").status == 204
    assert "very-secret" not in secrets.read_text()
    assert good(harness.client.get(CHANNELS))["channels"] == []


def test_the_key_of_a_webhook_is_made_and_shown_once_or_given(harness: Harness) -> None:
    asked = {"kind": "webhook", "name": "hook", "url": "http://lab.test/in"}
    made = good(harness.client.post(CHANNELS, asked), 201)
    assert made["key"].startswith("whsec_")
    again = good(harness.client.ask("PUT", f"{CHANNELS}/{made['channel']['id']}", json=asked))
    assert again["key"] is None
    given = good(harness.client.post(CHANNELS, {**asked, "name": "own", "key": "whsec_" + "a" * 44}), 201)
    assert given["key"] is None


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"kind": "slack", "name": "x"}, "the channel has no address"),
        ({"kind": "slack", "name": "x", "url": "file:///etc/passwd"}, "does not begin with http"),
        ({"kind": "webhook", "name": "x", "url": "http://x/", "key": "short"}, "the key must be at least 24 bytes"),
        ({**MAIL, "user": "ada", "security": "none"}, "a password would be sent unencrypted"),
        ({**MAIL, "to": ["b@lab.org\nBcc: c@lab.org"]}, "to"),
        ({**MAIL, "host": "smtp lab"}, "host"),
        ({**MAIL, "quiet": {"begins": "late", "ends": "07:00"}}, "'late' is not a time of day"),
        ({"kind": "pigeon", "name": "x"}, "kind"),
    ],
)
def test_a_channel_that_cannot_be_used_is_refused_with_words(harness: Harness, asked: dict[str, Any], words: str) -> None:
    assert words in good(harness.client.post(CHANNELS, asked), 400)["detail"]


def test_a_channel_stays_of_its_kind(harness: Harness) -> None:
    made = good(harness.client.post(CHANNELS, MAIL), 201)["channel"]
    assert (made["ready"], made["target"]["to"]) == (True, ["b@lab.org"])
    answer = harness.client.ask("PUT", f"{CHANNELS}/{made['id']}", json={"kind": "slack", "name": "x", "url": "http://x/"})
    assert good(answer, 400)["detail"] == "channel 'mail' is for email"


def test_rules_are_anyones_who_may_write_and_channels_an_admins(harness: Harness) -> None:
    writer, reader = harness.as_(Scope.USER, rights=Rights.WRITE), harness.as_(Scope.USER, rights=Rights.READ)
    rule = {"name": "failures", "kind": "failed"}
    assert good(writer.post(RULES, rule), 201)["limit"] == 0.0
    assert reader.post(RULES, {**rule, "name": "x"}).status == 403
    assert reader.get(RULES).status == reader.get(CHANNELS).status == reader.get("/api/v1/alerts/history").status == 200
    refused = good(writer.post(CHANNELS, {"kind": "slack", "name": "x", "url": "http://x/"}), 403)
    assert refused["detail"] == "only an admin's token may do this"
    assert writer.post(f"{CHANNELS}/0/test").status == 403
    assert harness.as_(Scope.RUN, run=harness.run()).get(RULES).status == 403


def test_a_rule_is_made_changed_and_deleted(harness: Harness) -> None:
    made = good(harness.client.post(RULES, {"name": "diverges", "kind": "metric", "filter": "metrics.loss > 10"}), 201)
    asked = {"name": "diverges", "kind": "stalled", "enabled": False}
    changed = good(harness.client.ask("PUT", f"{RULES}/{made['id']}", json=asked))
    assert (changed["id"], changed["kind"], changed["limit"], changed["enabled"]) == (made["id"], "stalled", 1800.0, False)
    assert (
        "expected" in good(harness.client.post(RULES, {"name": "x", "kind": "metric", "filter": "metrics.loss >"}), 400)["detail"].lower()
    )
    assert good(harness.client.post(RULES, asked), 409)["detail"] == "there is already a rule named 'diverges'"
    assert harness.client.ask("DELETE", f"{RULES}/{made['id']}").status == 204
    assert harness.client.ask("PUT", f"{RULES}/{made['id']}", json=asked).status == 404


def test_a_test_is_sent_at_once_and_says_what_kept_it(harness: Harness) -> None:
    with hooks() as kept:
        made = good(harness.client.post(CHANNELS, {"kind": "slack", "name": "ops", "url": kept.url}), 201)["channel"]
        assert good(harness.client.post(f"{CHANNELS}/{made['id']}/test")) == {"delivered": True, "words": ""}
        kept.answers = [(403, {})]
        assert good(harness.client.post(f"{CHANNELS}/{made['id']}/test")) == {"delivered": False, "words": "127.0.0.1 answered 403"}
    assert json.loads(kept.posts[0][2])["text"].startswith("Onward can reach this channel\n")


def test_the_servers_background_looks_and_sends_and_the_history_tells(harness: Harness) -> None:
    chores.send_alerts(harness.server.services)  # without channels there is nothing to do
    with hooks() as kept:
        made = good(harness.client.post(CHANNELS, {"kind": "slack", "name": "ops", "url": kept.url}), 201)["channel"]
        good(harness.client.post(RULES, {"name": "done", "kind": "finished", "channels": [made["id"]]}), 201)
        run = harness.run(name="digits")
        harness.opened.tracker.runs.update(run, state="finished", ended=harness.sandbox.clock.now())
        chores.send_alerts(harness.server.services)
        [waiting] = good(harness.client.get("/api/v1/alerts/history"))["notices"]
        assert (waiting["sent"], waiting["due"] > harness.sandbox.clock.now()) == (None, True)
        harness.sandbox.clock.sleep(60)
        chores.send_alerts(harness.server.services)
    [sent] = good(harness.client.get("/api/v1/alerts/history?limit=1"))["notices"]
    assert (sent["title"], sent["run_id"], sent["channel"], sent["rule"]) == ("digits finished", run, "ops", "done")
    assert sent["sent"] is not None and len(kept.posts) == 1
    assert good(harness.client.get(f"/api/v1/alerts/history?before={sent['id']}"))["notices"] == []
