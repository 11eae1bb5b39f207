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
from tests.unit.test_api_routes import Scene, good

CHANNELS, RULES = "/api/v1/alerts/channels", "/api/v1/alerts/rules"
MAIL = {"kind": "email", "name": "mail", "host": "smtp.lab.org", "sender": "a@lab.org", "to": ["b@lab.org"]}


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    with tracker_in(tmp_path) as opened:
        yield Scene(tmp_path, opened)


def test_a_channel_is_made_changed_and_deleted_and_never_tells_its_secrets(scene: Scene, tmp_path: Path) -> None:
    address = "https://hooks.slack.test/services/T0/B0/very-secret"
    made = good(scene.client.post(CHANNELS, {"kind": "slack", "name": "ops", "url": address}), 201)["channel"]
    assert (made["kind"], made["target"], made["ready"], made["quiet"]) == ("slack", {"host": "hooks.slack.test"}, True, None)
    quiet = {"begins": "22:00", "ends": "07:00", "zone": "Europe/Berlin"}
    changed = good(scene.client.ask("PUT", f"{CHANNELS}/{made['id']}", json={"kind": "slack", "name": "night", "quiet": quiet}))["channel"]
    assert (changed["name"], changed["quiet"], changed["ready"], changed["created"]) == ("night", quiet, True, made["created"])
    secrets = tmp_path / "tracker.secrets"
    assert (address in secrets.read_text(), secrets.stat().st_mode & 0o777) == (True, 0o600)
    assert "very-secret" not in scene.client.get(CHANNELS).text
    assert b"very-secret" not in (tmp_path / "tracker.db").read_bytes()
    assert scene.client.ask("DELETE", f"{CHANNELS}/{made['id']}").status == 204
    assert "very-secret" not in secrets.read_text()
    assert good(scene.client.get(CHANNELS))["channels"] == []


def test_the_key_of_a_webhook_is_made_and_shown_once_or_given(scene: Scene) -> None:
    asked = {"kind": "webhook", "name": "hook", "url": "http://lab.test/in"}
    made = good(scene.client.post(CHANNELS, asked), 201)
    assert made["key"].startswith("whsec_")
    again = good(scene.client.ask("PUT", f"{CHANNELS}/{made['channel']['id']}", json=asked))
    assert again["key"] is None
    given = good(scene.client.post(CHANNELS, {**asked, "name": "own", "key": "whsec_" + "a" * 44}), 201)
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
def test_a_channel_that_cannot_be_used_is_refused_with_words(scene: Scene, asked: dict[str, Any], words: str) -> None:
    assert words in good(scene.client.post(CHANNELS, asked), 400)["detail"]


def test_a_channel_stays_of_its_kind(scene: Scene) -> None:
    made = good(scene.client.post(CHANNELS, MAIL), 201)["channel"]
    assert (made["ready"], made["target"]["to"]) == (True, ["b@lab.org"])
    answer = scene.client.ask("PUT", f"{CHANNELS}/{made['id']}", json={"kind": "slack", "name": "x", "url": "http://x/"})
    assert good(answer, 400)["detail"] == "channel 'mail' is for email"


def test_rules_are_anyones_who_may_write_and_channels_an_admins(scene: Scene) -> None:
    writer, reader = scene.as_(Scope.USER, rights=Rights.WRITE), scene.as_(Scope.USER, rights=Rights.READ)
    rule = {"name": "failures", "kind": "failed"}
    assert good(writer.post(RULES, rule), 201)["limit"] == 0.0
    assert reader.post(RULES, {**rule, "name": "x"}).status == 403
    assert reader.get(RULES).status == reader.get(CHANNELS).status == reader.get("/api/v1/alerts/history").status == 200
    refused = good(writer.post(CHANNELS, {"kind": "slack", "name": "x", "url": "http://x/"}), 403)
    assert refused["detail"] == "only an admin's token may do this"
    assert writer.post(f"{CHANNELS}/0/test").status == 403
    assert scene.as_(Scope.RUN, run=scene.run()).get(RULES).status == 403


def test_a_rule_is_made_changed_and_deleted(scene: Scene) -> None:
    made = good(scene.client.post(RULES, {"name": "diverges", "kind": "metric", "filter": "metrics.loss > 10"}), 201)
    asked = {"name": "diverges", "kind": "stalled", "enabled": False}
    changed = good(scene.client.ask("PUT", f"{RULES}/{made['id']}", json=asked))
    assert (changed["id"], changed["kind"], changed["limit"], changed["enabled"]) == (made["id"], "stalled", 1800.0, False)
    assert "expected" in good(scene.client.post(RULES, {"name": "x", "kind": "metric", "filter": "metrics.loss >"}), 400)["detail"].lower()
    assert good(scene.client.post(RULES, asked), 409)["detail"] == "there is already a rule named 'diverges'"
    assert scene.client.ask("DELETE", f"{RULES}/{made['id']}").status == 204
    assert scene.client.ask("PUT", f"{RULES}/{made['id']}", json=asked).status == 404


def test_a_test_is_sent_at_once_and_says_what_kept_it(scene: Scene) -> None:
    with hooks() as kept:
        made = good(scene.client.post(CHANNELS, {"kind": "slack", "name": "ops", "url": kept.url}), 201)["channel"]
        assert good(scene.client.post(f"{CHANNELS}/{made['id']}/test")) == {"delivered": True, "words": ""}
        kept.answers = [(403, {})]
        assert good(scene.client.post(f"{CHANNELS}/{made['id']}/test")) == {"delivered": False, "words": "127.0.0.1 answered 403"}
    assert json.loads(kept.posts[0][2])["text"].startswith("Onward can reach this channel\n")


def test_the_servers_background_looks_and_sends_and_the_history_tells(scene: Scene) -> None:
    chores.send_alerts(scene.server.services)  # without channels there is nothing to do
    with hooks() as kept:
        made = good(scene.client.post(CHANNELS, {"kind": "slack", "name": "ops", "url": kept.url}), 201)["channel"]
        good(scene.client.post(RULES, {"name": "done", "kind": "finished", "channels": [made["id"]]}), 201)
        run = scene.run(name="digits")
        scene.opened.tracker.runs.update(run, state="finished", ended=scene.place.clock.now())
        chores.send_alerts(scene.server.services)
        [waiting] = good(scene.client.get("/api/v1/alerts/history"))["notices"]
        assert (waiting["sent"], waiting["due"] > scene.place.clock.now()) == (None, True)
        scene.place.clock.sleep(60)
        chores.send_alerts(scene.server.services)
    [sent] = good(scene.client.get("/api/v1/alerts/history?limit=1"))["notices"]
    assert (sent["title"], sent["run_id"], sent["channel"], sent["rule"]) == ("digits finished", run, "ops", "done")
    assert sent["sent"] is not None and len(kept.posts) == 1
    assert good(scene.client.get(f"/api/v1/alerts/history?before={sent['id']}"))["notices"] == []
