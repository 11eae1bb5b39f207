"""The settings' table of the gateway."""

from __future__ import annotations

from pathlib import Path

import pytest

from onward.errors import InvalidInput
from onward.model.requests.gateway_settings import GatewaySettings, V1Settings
from onward.settings import load_settings

LAB = """\
[gateway]
url = "amqps://broker.lab.org/training"
user = "onward"
password-file = "~/secret"
ca-file = "/etc/lab.pem"
recipes = "$WORK/recipes"
hosts = ["Rodan.lab.org", "files.lab.org:8443"]
server = "https://onward.lab.org"
inline = "4M"
kept = "1-00:00:00"
quota = 0

[gateway.v1]
enabled = true
rodan = "https://rodan.lab.org"
"""


def read(tmp_path: Path, text: str) -> GatewaySettings:
    (tmp_path / "settings.toml").write_text(text)
    return load_settings({"ONWARD_SETTINGS": str(tmp_path / "settings.toml"), "HOME": "/home/me", "WORK": "/work"}).gateway


def test_the_table_is_read_with_its_defaults(tmp_path: Path) -> None:
    assert read(tmp_path, LAB) == GatewaySettings(
        url="amqps://broker.lab.org/training",
        user="onward",
        password_file=Path("/home/me/secret"),
        ca_file=Path("/etc/lab.pem"),
        recipes=Path("/work/recipes"),
        hosts=("rodan.lab.org", "files.lab.org:8443"),
        server="https://onward.lab.org",
        inline=4,
        kept=86400,
        quota=0,
        v1=V1Settings(enabled=True, rodan="https://rodan.lab.org"),
    )
    assert read(tmp_path, "") == GatewaySettings()


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('url = "amqp://me:secret@broker/"', "gateway.url: has a user or password in it; expected them in user and password-file"),
        ('url = "https://broker"', "a URL such as amqps://broker.lab.org/"),
        ('user = "onward"', "gateway.password-file: missing, expected both or neither"),
        ('url = "amqp://broker"\nca-file = "/ca.pem"', "is not encrypted and checks no certificate"),
        ('recipes = "$NOWHERE/recipes"', "gateway.recipes: found $NOWHERE, which is not set here"),
        ('hosts = ["https://rodan.lab.org"]', "without https://"),
        ('v1 = { jobs = "amq.rabbitmq.trace" }', "a queue's name"),
        ("message = 0", "above zero"),
    ],
)
def test_what_cannot_be_used_is_named(tmp_path: Path, line: str, said: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        read(tmp_path, f"[gateway]\n{line}\n")

    assert said in str(caught.value)


def test_a_password_in_the_address_is_not_repeated(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput) as caught:
        read(tmp_path, '[gateway]\nurl = "amqp://me:hunter2@broker/"\n')

    assert "hunter2" not in str(caught.value)
