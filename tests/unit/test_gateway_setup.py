"""`onward gateway init`: what it would write, that twice is once, and what it refuses. The login names of the first gateway count."""

from __future__ import annotations

import shutil
import stat
import subprocess
import tomllib
from pathlib import Path

import pytest

from onward.errors import Conflict, InvalidInput, NotFound, StorageError
from onward.gateway.setup.plan import GatewaySetup, SetupOptions, plan_setup
from onward.gateway.setup.settings_text import with_keys
from onward.settings import load_settings

OLD = {"RABBITMQ_HOST": "old.lab.org", "RABBITMQ_USER": "worker", "RABBITMQ_PASSWORD": "hunter2"}


def env_of(home: Path, **more: str) -> dict[str, str]:
    return {"HOME": str(home), "PATH": "/opt/slurm 100%/bin", **more}


def written(options: SetupOptions, env: dict[str, str], home: Path) -> GatewaySetup:
    setup = plan_setup(options, env, home)
    for change in setup.changes:
        change.write()
    return setup


def everything(home: Path) -> dict[str, bytes]:
    return {str(path.relative_to(home)): path.read_bytes() for path in home.rglob("*") if path.is_file()}


def test_a_bare_machine_gets_settings_a_recipe_a_password_and_a_service_and_a_second_time_nothing(tmp_path: Path) -> None:
    options = SetupOptions(broker="lab.org", vhost="a/b", recipe="patchwise", v1=True, systemd=True)
    env = env_of(tmp_path)
    first = written(options, env, tmp_path)
    there = everything(tmp_path)
    again = written(options, env, tmp_path)
    settings = load_settings(env).gateway

    assert (settings.url, settings.user, settings.v1.enabled, settings.v1.recipe) == ("amqps://lab.org/a%2Fb", "gateway", True, "patchwise")
    assert settings.password_file and settings.recipes and (settings.recipes / "patchwise" / "train.py").is_file()
    assert len(settings.password_file.read_text().strip()) >= 32
    for secret in (settings.password_file, tmp_path / ".config/onward/gateway.env"):
        assert stat.S_IMODE(secret.stat().st_mode) == 0o600
    assert (len(first.changes), again.changes) == (5, [])
    assert everything(tmp_path) == there
    assert first.commands == again.commands
    assert first.commands[:2] == ["rabbitmqctl add_vhost a/b", f"rabbitmqctl add_user gateway < {settings.password_file}"]
    assert "hpc-jobs|hpc-results" in first.commands[2]


def test_what_the_settings_say_stays_comments_included_and_is_only_added_to(tmp_path: Path) -> None:
    path = tmp_path / "settings.toml"
    text = '# mine\ncluster = "local"\n[gateway] # the broker\nquota = 7 # few\n\n[clusters.lab]\nscheduler = "slurm"\n'
    path.write_text(text)
    path.chmod(0o640)
    env = env_of(tmp_path, ONWARD_SETTINGS=str(path))
    setup = written(SetupOptions(broker="amqp://lab.org:1234"), env, tmp_path)
    lines = path.read_text().splitlines()

    assert [line for line in lines if line not in text.splitlines()] == [
        'url = "amqp://lab.org:1234/"',
        'user = "gateway"',
        f'password-file = "{tmp_path}/broker-password"',
    ]
    assert set(text.splitlines()) <= set(lines)
    assert load_settings(env).gateway.quota == 7
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    shown = setup.changes[0].shown()
    assert '+url = "amqp://lab.org:1234/"' in shown and "-quota" not in shown
    with pytest.raises(Conflict, match=r'gateway.url = "amqp://lab.org:1234/", not "amqps://other.org/"') as caught:
        plan_setup(SetupOptions(broker="other.org"), env, tmp_path)
    assert "change it yourself" in caught.value.hint


def test_settings_that_a_link_leads_to_are_changed_where_they_are(tmp_path: Path) -> None:
    real, link = tmp_path / "dotfiles.toml", tmp_path / "settings.toml"
    real.write_text("")
    link.symlink_to(real)
    written(SetupOptions(broker="lab.org"), env_of(tmp_path, ONWARD_SETTINGS=str(link)), tmp_path)

    assert link.is_symlink() and 'url = "amqps://lab.org/"' in real.read_text()


@pytest.mark.parametrize(
    "text",
    ["gateway = {quota = 1}\n", "gateway.quota = 1\n", 'root = """\n[gateway]\n"""\n'],
)
def test_a_table_that_cannot_be_added_to_is_left_with_the_lines_to_write(text: str) -> None:
    with pytest.raises(InvalidInput, match=r"no keys can be added to its \[gateway\]") as caught:
        with_keys(text, {"gateway": {"url": "amqp://lab.org/"}}, "settings.toml")

    assert 'url = "amqp://lab.org/"' in caught.value.hint


def test_a_subtable_keeps_its_place_and_its_keys() -> None:
    text = '[gateway.v1]\nrodan = "https://r.org"\n'
    after = with_keys(text, {"gateway": {"url": "amqp://lab.org/"}, "gateway.v1": {"enabled": True}}, "settings.toml")

    assert tomllib.loads(after) == {"gateway": {"url": "amqp://lab.org/", "v1": {"enabled": True, "rodan": "https://r.org"}}}
    with pytest.raises(InvalidInput, match="not TOML"):
        with_keys("[gateway", {}, "settings.toml")


@pytest.mark.parametrize(
    ("variables", "url", "user", "password"),
    [
        (OLD, "amqps://old.lab.org/", "worker", "hunter2"),
        ({f"HPC_{name}": value for name, value in OLD.items()}, "amqp://old.lab.org/", "worker", "hunter2"),
        ({"RABBITMQ_HOST": "old.lab.org:5000", "RABBITMQ_USER": "worker"}, "amqps://old.lab.org:5000/", "worker", None),
        ({"RABBITMQ_HOST": "old.lab.org"}, "amqps://old.lab.org/", "gateway", None),
    ],
)
def test_the_variables_of_the_first_gateway_become_settings(
    variables: dict[str, str], url: str, user: str, password: str | None, tmp_path: Path
) -> None:
    env = env_of(tmp_path)
    setup = written(SetupOptions(), env | variables, tmp_path)
    found = load_settings(env).gateway

    assert (found.url, found.user) == (url, user)
    assert found.password_file is not None
    held = found.password_file.read_text().strip()
    assert (held == password) if password else len(held) >= 32
    assert any(line.startswith("rabbitmqctl add_user") for line in setup.commands) == (password is None), "an old login is there already"
    assert "hunter2" not in "\n".join([*(change.shown() for change in setup.changes), *setup.commands, repr(setup)])


def test_the_login_at_the_application_and_the_authority_of_the_broker_are_taken_over(tmp_path: Path) -> None:
    env = env_of(tmp_path)
    password = 'a"b$c`d\\e f'
    rodan = {"RODAN_HOST": "rodan.lab.org", "RODAN_USER": "hpc", "RODAN_EMAIL": "hpc@lab.org", "RODAN_PASSWORD": password}
    options = SetupOptions(v1=True, systemd=True)
    written(options, env | OLD | rodan | {"SSL_CERT_FILE": "/ca.pem", "ONWARD_DB": "postgresql://o:s3cret@db/o"}, tmp_path)
    found = load_settings(env).gateway
    secrets = tmp_path / ".config/onward/gateway.env"
    unit = (tmp_path / ".config/systemd/user/onward-gateway.service").read_text()

    assert (found.ca_file, found.v1.enabled, found.v1.rodan) == (Path("/ca.pem"), True, "http://rodan.lab.org")
    shown = subprocess.run(
        ["sh", "-c", '. "$0"; printf %s "$RODAN_PASSWORD|$RODAN_EMAIL|$ONWARD_DB|$SSL_CERT_FILE"', secrets],
        capture_output=True,
        text=True,
        check=True,
    )
    assert shown.stdout == f"{password}|hpc@lab.org|postgresql://o:s3cret@db/o|/ca.pem"
    assert f"EnvironmentFile={secrets}" in unit and r'Environment="PATH=/opt/slurm 100%%/bin"' in unit
    assert not any(word in unit for word in ("hunter2", "s3cret", "hpc@"))
    with pytest.raises(InvalidInput, match="RODAN_PASSWORD has a control character"):
        plan_setup(options, env_of(tmp_path / "other") | OLD | rodan | {"RODAN_PASSWORD": "a\nb"}, tmp_path)
    with pytest.raises(InvalidInput, match="the login at Rodan lacks a user"):
        plan_setup(options, env_of(tmp_path / "third") | OLD | {"RODAN_HOST": "r.org", "RODAN_PASSWORD": "x"}, tmp_path)


def test_a_unit_of_the_machine_runs_as_this_user_and_after_the_network(tmp_path: Path) -> None:
    options = SetupOptions(broker="lab.org", system=True, system_units=tmp_path / "etc")
    setup = written(options, env_of(tmp_path), tmp_path)
    unit = (tmp_path / "etc" / "onward-gateway.service").read_text()

    assert "\nUser=" in unit and "After=network-online.target" in unit and "WantedBy=multi-user.target" in unit
    if analyze := shutil.which("systemd-analyze"):
        said = subprocess.run([analyze, "verify", tmp_path / "etc" / "onward-gateway.service"], capture_output=True, text=True, check=False)
        assert "onward-gateway.service" not in said.stderr, said.stderr
    assert "systemctl daemon-reload && systemctl enable --now onward-gateway.service" in setup.next


@pytest.mark.parametrize(
    ("options", "error", "said"),
    [
        (SetupOptions(), InvalidInput, "no broker is named"),
        (SetupOptions(broker="amqp://me:pass@lab.org"), InvalidInput, "without user and password"),
        (SetupOptions(broker="http://lab.org"), InvalidInput, "must be a host"),
        (SetupOptions(broker="amqps://lab.org/a", vhost="b"), InvalidInput, "names the virtual host a, and --vhost b"),
        (SetupOptions(broker="lab.org", recipe="nosuch"), NotFound, "no recipe named nosuch comes with Onward"),
    ],
)
def test_what_cannot_be_set_up_is_refused_before_anything_is_written(
    options: SetupOptions, error: type[Exception], said: str, tmp_path: Path
) -> None:
    with pytest.raises(error, match=said):
        plan_setup(options, env_of(tmp_path), tmp_path)
    assert everything(tmp_path) == {}


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / ".config").write_text("a file")
    with pytest.raises(StorageError, match=r"settings.toml cannot be written"):
        written(SetupOptions(broker="lab.org"), env_of(tmp_path), tmp_path)
