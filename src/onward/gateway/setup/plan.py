"""What `onward gateway init` would write, and what is left to do. Nothing is written here, and nothing that is there is changed."""

from __future__ import annotations

import getpass
import os
import secrets
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from urllib.parse import quote, urlsplit

from onward.errors import InvalidInput, NotFound
from onward.gateway.messages.protocols import V1, load_protocol
from onward.gateway.rabbitmq.connection import Broker, broker_url_of, login_of
from onward.gateway.setup.broker_commands import broker_commands
from onward.gateway.setup.planned_files import PRIVATE, PlannedChange, PlannedFile, PlannedFolder
from onward.gateway.setup.service_unit import UNIT, secrets_text, unit_text
from onward.gateway.setup.settings_text import with_keys
from onward.inputs.recipes.catalog import packaged_recipes, read_recipes
from onward.inputs.yaml_lines import read_text
from onward.model.requests.gateway_settings import GatewaySettings
from onward.operations.systemd_units import user_units
from onward.settings import parse_settings, settings_path

_USER = "gateway"


@dataclass(frozen=True, kw_only=True)
class SetupOptions:
    broker: str | None = None  # a host, or amqp(s)://HOST:PORT
    vhost: str | None = None
    user: str | None = None
    recipe: str | None = None
    v1: bool = False
    systemd: bool = False
    system: bool = False  # the machine's unit, not the user's
    system_units: Path = Path("/etc/systemd/system")


@dataclass(frozen=True, kw_only=True)
class GatewaySetup:
    changes: list[PlannedChange]
    kept: list[str] = field(default_factory=list)  # what is there already
    commands: list[str] = field(default_factory=list)  # for the broker's administrator
    next: list[str] = field(default_factory=list)


def plan_setup(options: SetupOptions, env: Mapping[str, str], folder: Path) -> GatewaySetup:
    """`folder`: where a service starts, since ONWARD_ROOT may be relative to it."""
    path = settings_path(env)
    if path is None:
        raise InvalidInput("there is no place for the settings: HOME is not set", hint="set ONWARD_SETTINGS to a file")
    path = path.absolute()
    before = read_text(path) if path.exists() else None
    known = parse_settings(before or "", path, env).gateway
    url = _url(options, env, known)
    user, password, fresh = _login(options, env, known)
    password_file = known.password_file or path.parent / "broker-password"
    recipes = known.recipes or path.parent / "recipes"
    wanted: dict[str, dict[str, str | bool]] = {"gateway": {"url": url}}
    if known.user is None or options.user:
        wanted["gateway"]["user"] = user
    if known.password_file is None:
        wanted["gateway"]["password-file"] = str(password_file)
    if env.get("SSL_CERT_FILE") and known.ca_file is None and url.startswith("amqps:"):
        wanted["gateway"]["ca-file"] = str(Path(env["SSL_CERT_FILE"]).absolute())
    if options.recipe and known.recipes is None:
        wanted["gateway"]["recipes"] = str(recipes)
    if options.v1:
        wanted["gateway.v1"] = {"enabled": True, **({"recipe": options.recipe} if options.recipe else {}), **_application(env, known)}
    text = with_keys(before or "", wanted, str(path))
    settings = parse_settings(text, path, env).gateway
    files: list[PlannedChange] = [
        PlannedFile(path=path, text=text, before=before),
        *_secret(password_file, password),
        *_recipe(options.recipe, recipes),
        *(_service(options, env, path, folder) if options.systemd or options.system else ()),
    ]
    broker = Broker.of({}, replace(settings, user=None, password_file=None), url=url, user=user, password=password)
    return GatewaySetup(
        changes=[one for one in files if one.needed],
        kept=[str(one.path) for one in files if not one.needed],
        commands=broker_commands(broker, settings, password_file if fresh else None),
        next=list(_next(options, settings, path)),
    )


def _url(options: SetupOptions, env: Mapping[str, str], known: GatewaySettings) -> str:
    """As the options say, else the settings, else the variables of the first gateway."""
    if options.broker is None and options.vhost is None and known.url:
        return known.url
    named = options.broker or known.url or broker_url_of(env)
    parts = urlsplit(named if "://" in named else f"amqps://{named}")
    if parts.scheme not in ("amqp", "amqps") or not parts.hostname or "@" in parts.netloc:
        raise InvalidInput(
            "--broker must be a host, amqp://HOST or amqps://HOST, without user and password",
            hint="onward gateway init --broker broker.lab.org",
        )
    path = parts.path.strip("/")
    asked = path if options.vhost is None else "" if options.vhost == "/" else quote(options.vhost, safe="")
    if options.broker and path and path != asked:
        raise InvalidInput(f"--broker names the virtual host {path}, and --vhost {options.vhost}", hint="name it once")
    url = f"{parts.scheme}://{parts.netloc}/{asked}"
    return known.url if known.url in (url, url.rstrip("/")) else url


def _login(options: SetupOptions, env: Mapping[str, str], known: GatewaySettings) -> tuple[str, str, bool]:
    """User, password, and whether they are still to be set at the broker: an old login exists there."""
    try:
        user, password = login_of(env, GatewaySettings())
    except InvalidInput:
        user, password = env.get("RABBITMQ_USER") or _USER, ""
    wanted = options.user or known.user or user
    if password and wanted == user:
        return user, password, False
    return wanted, secrets.token_urlsafe(24), True


def _application(env: Mapping[str, str], known: GatewaySettings) -> dict[str, str | bool]:
    """Its address, where the variables of the first gateway name it. A part of a login is refused here, and not at the first request."""
    login = load_protocol(V1).login(env, known.v1) if any(env.get(name) for name in ("RODAN_PASSWORD", "RODAN_PASSWORD_FILE")) else None
    return {"rodan": login.url} if login and known.v1.rodan is None else {}


def _secret(path: Path, password: str) -> Iterator[PlannedFile]:
    yield PlannedFile(path=path, text=f"{password}\n", mode=PRIVATE)


def _recipe(name: str | None, recipes: Path) -> Iterator[PlannedFolder]:
    if name is None:
        return
    packaged = packaged_recipes()
    if name not in packaged and not (recipes / name).exists():
        raise NotFound(f"no recipe named {name} comes with Onward", hint=f"there is {', '.join(packaged) or 'none'}")
    yield PlannedFolder(path=recipes / name, source=packaged.get(name, recipes / name))


def _service(options: SetupOptions, env: Mapping[str, str], settings: Path, folder: Path) -> Iterator[PlannedFile]:
    secret = settings.parent / "gateway.env"
    yield PlannedFile(path=secret, text=secrets_text(env, v1=options.v1), mode=PRIVATE)
    units = options.system_units if options.system else user_units(env)
    text = unit_text(
        {**env, "ONWARD_SETTINGS": str(settings)}, folder=folder, secrets=secret, user=getpass.getuser() if options.system else None
    )
    yield PlannedFile(path=units / UNIT, text=text)


def _next(options: SetupOptions, settings: GatewaySettings, path: Path) -> Iterator[str]:
    if options.v1 and settings.v1.rodan is None:
        yield f'write rodan = "https://…" below [gateway.v1] in {path}: where the inputs of v1 messages are'
    if options.v1 and (options.systemd or options.system):
        yield f"check the application's login in {path.parent / 'gateway.env'}: RODAN_USER and RODAN_PASSWORD"
    if not options.recipe and not list(read_recipes(settings.recipes)):
        yield "put a recipe into a folder that gateway.recipes names"
    if options.system:
        yield f"systemctl daemon-reload && systemctl enable --now {UNIT}"
    elif options.systemd:
        yield f"systemctl --user daemon-reload && systemctl --user enable --now {UNIT}"
        yield f"loginctl enable-linger {os.environ.get('USER') or getpass.getuser()}, so that it runs when nobody is logged in"
    else:
        yield "onward gateway"
