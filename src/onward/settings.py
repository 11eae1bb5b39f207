"""The settings file: where runs go, and the clusters of this place by name. Without one, everything has a default.

`$ONWARD_SETTINGS`, else `onward/settings.toml` in `$XDG_CONFIG_HOME` or `~/.config`. A profile is read at submit and
frozen with the run: a leg never looks here.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, ValidationError, field_validator

from onward.errors import InvalidInput
from onward.inputs.params.sections import ResourcesIn, Section
from onward.inputs.problems import problems_of
from onward.inputs.values import Count, CountOrZero, Duration, Name, Size, SizeAboveZero, Switch, custom_error, did_you_mean, listed, word
from onward.inputs.yaml_lines import KeyPath, read_text
from onward.model.requests.gateway_settings import GatewaySettings, V1Settings
from onward.schedulers.cluster_settings import SCHEDULERS, ClusterSettings, ServerSettings, Settings, TrackerSettings
from onward.schedulers.gridengine.resource_options import KNOWN_NAMES, NAME_OF_ONE, misnamed
from onward.schedulers.registry import known_names

_RESERVED = ("auto",)
_GATEWAY_FILES = ("password_file", "ca_file", "recipes")
_MOST_AHEAD = 100  # jobs of one run, all queued at submit
__all__ = [
    "SCHEDULERS",
    "ClusterIn",
    "ClusterSettings",
    "GatewayIn",
    "GatewaySettings",
    "ServerIn",
    "ServerSettings",
    "Settings",
    "SettingsIn",
    "TrackerIn",
    "TrackerSettings",
    "V1In",
    "load_settings",
    "parse_settings",
    "settings_path",
]

_REFERENCE = "`onward help settings` describes every key"

Root = Annotated[str, word(r"(?:/|~/|~$|\$)[^\x00-\x1f]*", "a path that begins with /, ~/ or a variable such as $WORK")]
NodePath = Annotated[str, word(r"/[^\x00-\x1f$]*", "a path on the nodes that begins with /, without variables")]
SshHost = Annotated[str, word(r"[A-Za-z0-9_][A-Za-z0-9_.-]*(?:@[A-Za-z0-9_][A-Za-z0-9_.-]*)?", "a host as in ssh HOST: lab, or me@lab.org")]
Address = Annotated[
    str, word(r"https?://(?![^/]*@)[^\s/?#]+(?:/(?!t/)[^\s?#]*)?", "a URL such as https://tracker.lab.org, without a token in it")
]
Program = Annotated[str, word(r"[A-Za-z0-9_./][^\x00-\x1f]*", "a program such as python3.11, or the path of one")]


SiteName = Annotated[str, word(NAME_OF_ONE, "a resource such as h_vmem or h_vmem/slot, an option such as -q, or a parallel environment")]
PluginOption = Annotated[str, word(r"[^\x00-\x1f]*", "one line of text")]
BrokerUrl = Annotated[
    str,
    word(
        r"amqps?://(?![^/]*@)[A-Za-z0-9_.\-\[\]:]+(?:/[^\s/?#]*)?",
        "a URL such as amqps://broker.lab.org/ or amqp://127.0.0.1:5672/VHOST, without user and password in it",
    ),
]
BrokerUser = Annotated[str, word(r"[^\x00-\x20]{1,128}", "a user's name")]
QueueName = Annotated[str, word(r"(?!amq\.)[A-Za-z0-9_.:-]{1,200}", "a queue's name: letters, digits, '_', '.', ':' or '-'")]
WebHost = Annotated[
    str, word(r"\[?[A-Za-z0-9_][A-Za-z0-9_.:-]*\]?", "a host such as rodan.lab.org or rodan.lab.org:8443, without https://")
]


class ClusterIn(Section):
    scheduler: Name | None = Field(default=None, description="What runs the jobs: local, slurm, gridengine, or a plugin's name.")
    ssh: SshHost | None = Field(default=None, description="Host through which this cluster is reached, as in ssh HOST.")
    root: Root | None = Field(default=None, description="Runs folder for this cluster; its nodes must see it.")
    local_disk: NodePath | None = Field(default=None, description="Folder on a node's own disk for checkpoints being written.")
    python: Annotated[list[Program], BeforeValidator(listed)] | None = Field(
        default=None, description="Python that starts the supervisor on this cluster's nodes, or several, tried in this order."
    )
    legs_ahead: CountOrZero | None = Field(default=None, description="Legs to queue at submit, if jobs may not submit; 0: none.")
    notify: Switch | None = Field(default=None, description="Grid Engine: whether to request its kill notice.")
    names: dict[str, SiteName] = Field(default_factory=dict, description="Grid Engine: this site's names for Onward's resources.")
    options: dict[str, PluginOption] = Field(default_factory=dict, description="Settings of a plugin.")
    defaults: ResourcesIn = Field(default_factory=ResourcesIn, description="Default resources of runs.")
    cpus: Count | None = Field(default=None, description="Local only: CPU cores that jobs may use together.")
    mem: SizeAboveZero | None = Field(default=None, description="Local only: memory that jobs may use together.")
    gpus: CountOrZero | None = Field(default=None, description="Local only: GPUs that jobs may use together.")


class TrackerIn(Section):
    url: Address | None = Field(default=None, description="Server that jobs send their records to, if it cannot read the runs folder.")
    token_file: Root | None = Field(default=None, description="File with your token for it, of mode 600.")


class ServerIn(Section):
    code: list[Root] = Field(default_factory=list, description="Folders whose code may be submitted over HTTP. Default: none.")
    requests: CountOrZero | None = Field(default=None, description="Limit on a token's requests per second, except points; 0: no limit.")
    logins: Count | None = Field(default=None, description="Limit on failed logins per minute from one address.")
    streams: Count | None = Field(default=None, description="Limit on a user's open live streams and followed logs.")
    artifacts: Size | None = Field(default=None, description="Limit on uploads to one run; 0: no limit.")


class V1In(Section):
    enabled: Switch | None = Field(default=None, description="Whether to take messages of protocol v1.")
    recipe: Name | None = Field(default=None, description="Recipe that they ask for.")
    jobs: QueueName | None = Field(default=None, description="Queue of incoming messages.")
    results: QueueName | None = Field(default=None, description="Queue of replies.")
    rodan: Address | None = Field(default=None, description="Address of the application, for inputs that are only a path.")


class GatewayIn(Section):
    url: BrokerUrl | None = Field(default=None, description="Address of the broker.")
    user: BrokerUser | None = Field(default=None, description="User on the broker.")
    password_file: Root | None = Field(default=None, description="File with that user's password, of mode 600.")
    ca_file: Root | None = Field(default=None, description="PEM file of the authority that signed the broker's certificate.")
    recipes: Root | None = Field(default=None, description="Folder of this site's recipes.")
    hosts: list[WebHost] = Field(default_factory=list, description="Hosts from which inputs may be fetched.")
    server: Address | None = Field(default=None, description="Address of `onward up`, for results that do not fit in a message.")
    inline: Size | None = Field(default=None, description="Limit on the size of results in a reply.")
    message: SizeAboveZero | None = Field(default=None, description="Limit on the size of an incoming message.")
    kept: Duration | None = Field(default=None, description="How long the address of a result is valid.")
    quota: CountOrZero | None = Field(default=None, description="Limit on a sender's open requests; 0: no limit.")
    queue: CountOrZero | None = Field(default=None, description="Limit on all open requests; 0: no limit.")
    v1: V1In = Field(default_factory=V1In, description="Protocol v1.")

    @field_validator("url", mode="before")
    @classmethod
    def _no_secret(cls, value: object) -> object:
        if isinstance(value, str) and "@" in value:
            raise custom_error("has a user or password in it; expected them in user and password-file")  # and not repeated here
        return value


class SettingsIn(Section):
    root: Root | None = Field(default=None, description="Runs folder.")
    cluster: Name | None = Field(default=None, description="Default cluster.")
    clusters: dict[Name, ClusterIn] = Field(default_factory=dict, description="Profiles of clusters, by name.")
    tracker: TrackerIn = Field(default_factory=TrackerIn, description="A server on another machine, to send records to.")
    server: ServerIn = Field(default_factory=ServerIn, description="Limits of `onward up`.")
    gateway: GatewayIn = Field(default_factory=GatewayIn, description="The gateway: its broker and limits.")


def settings_path(env: Mapping[str, str]) -> Path | None:
    """Where the settings file is, or would be."""
    if env.get("ONWARD_SETTINGS"):
        return Path(env["ONWARD_SETTINGS"])
    if env.get("XDG_CONFIG_HOME", "").startswith("/"):  # the XDG rules: a relative one does not count
        return Path(env["XDG_CONFIG_HOME"], "onward", "settings.toml")
    return Path(env["HOME"], ".config", "onward", "settings.toml") if env.get("HOME") else None


def load_settings(env: Mapping[str, str]) -> Settings:
    """The settings, or the defaults where there is no file. One that `$ONWARD_SETTINGS` names must be there."""
    path = settings_path(env)
    if path is None or not (env.get("ONWARD_SETTINGS") or _may_be_there(path)):
        return Settings()
    return parse_settings(read_text(path), path, env)


def parse_settings(text: str, path: Path, env: Mapping[str, str]) -> Settings:
    """`path`: where the text is from, or will be."""
    try:
        read = SettingsIn.model_validate(tomllib.loads(text))
    except ValidationError as error:
        sentences = [sentence for _, sentence in problems_of(error, SettingsIn, lambda keys: f"{path}: {_dotted(keys)}")]
        raise InvalidInput("\n".join(sentences), hint=_REFERENCE) from error
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"{path}: not TOML: {error}", hint=_REFERENCE) from error
    problems = [f"{path}: {problem}" for problem in _contradictions(read, env)]
    if problems:
        raise InvalidInput("\n".join(problems), hint=_REFERENCE)
    return Settings(
        source=path,
        default_root=_expanded(read.root, env),
        default_cluster=read.cluster if read.cluster != "auto" else None,
        clusters={name: _cluster(name, profile, env) for name, profile in read.clusters.items()},
        tracker=_tracker(read.tracker, env),
        server=_server(read.server, env),
        gateway=_gateway(read.gateway, env),
    )


def _may_be_there(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:  # a folder we may not enter: reading it says so
        return True


def _cluster(name: str, read: ClusterIn, env: Mapping[str, str]) -> ClusterSettings:
    return ClusterSettings(
        name=name,
        scheduler=read.scheduler or name,
        ssh=read.ssh,
        root=Path(read.root) if read.ssh and read.root else _expanded(read.root, env),
        local_disk=read.local_disk,
        python=read.python[0] if read.python else None,
        other_pythons=tuple(read.python[1:]) if read.python else (),
        legs_ahead=read.legs_ahead or 0,
        notify=read.notify is not False,
        names={key.replace("_", "-"): value for key, value in read.names.items()},
        options=read.options,
        defaults=read.defaults.to_model(),
        cpus=read.cpus,
        mem=read.mem,
        gpus=read.gpus,
    )


def _tracker(read: TrackerIn, env: Mapping[str, str]) -> TrackerSettings | None:
    token = _expanded(read.token_file, env)
    return TrackerSettings(url=read.url.rstrip("/"), token_file=token) if read.url and token else None


def _server(read: ServerIn, env: Mapping[str, str]) -> ServerSettings:
    fields = {key: value for key, value in read.model_dump(exclude={"code"}).items() if value is not None}
    return ServerSettings(code=tuple(folder for folder in (_expanded(one, env) for one in read.code) if folder), **fields)


def _gateway(read: GatewayIn, env: Mapping[str, str]) -> GatewaySettings:
    fields: dict[str, Any] = {key: value for key, value in read.model_dump(exclude={"hosts", "v1"}).items() if value is not None}
    fields |= {key: _expanded(getattr(read, key), env) for key in _GATEWAY_FILES}
    v1 = V1Settings(**{key: value for key, value in read.v1.model_dump().items() if value is not None})
    return GatewaySettings(hosts=tuple(host.lower() for host in read.hosts), v1=v1, **fields)


def _contradictions(read: SettingsIn, env: Mapping[str, str]) -> list[str]:
    """What is wrong though each value alone is right."""
    problems = [f"root: {said}" for said in _unset(read.root, env)]
    problems += [f"server.code: {said}" for folder in read.server.code for said in _unset(folder, env)]
    problems += [f"tracker.token-file: {said}" for said in _unset(read.tracker.token_file, env)]
    for key in _GATEWAY_FILES:
        problems += [f"gateway.{key.replace('_', '-')}: {said}" for said in _unset(getattr(read.gateway, key), env)]
    if read.gateway.ca_file and (read.gateway.url or "").startswith("amqp:"):
        problems.append(
            "gateway.ca-file: an amqp:// connection is not encrypted and checks no certificate; expected amqps:// in gateway.url"
        )
    if bool(read.gateway.user) != bool(read.gateway.password_file):
        problems.append(f"gateway.{'password-file' if read.gateway.user else 'user'}: missing, expected both or neither")
    if bool(read.tracker.url) != bool(read.tracker.token_file):
        problems.append(f"tracker.{'token-file' if read.tracker.url else 'url'}: missing, expected both or neither")
    known = ("auto", *SCHEDULERS, *read.clusters)
    if read.cluster is not None and read.cluster not in known:
        problems.append(f"cluster: found {read.cluster!r}, expected one of {', '.join(dict.fromkeys(known))}")
    for name, profile in read.clusters.items():
        where = f"clusters.{name}"
        problems += [f"{where}.root: {said}" for said in _unset(profile.root, env) if not profile.ssh]
        if profile.ssh and name == "local":
            problems.append(f"{where}.ssh: local is this machine, expected another name for a profile of {profile.ssh}")
        if name in _RESERVED:
            problems.append(f"{where}: {name} is reserved, expected another name for a profile")
        elif profile.scheduler is None and name not in SCHEDULERS:
            problems.append(f"{where}.scheduler: missing, expected {_either(known_names())}")
        elif name in SCHEDULERS and profile.scheduler not in (None, name):
            problems.append(f"{where}.scheduler: found {profile.scheduler!r}, expected {name!r} for a profile of that name")
        elif (profile.scheduler or name) != "local":
            problems += [
                f"{where}.{key}: only a local cluster has slots; expected {where}.defaults.{instead}"
                for key, instead in (("cpus", "cpus-per-task"), ("mem", "mem"), ("gpus", "gpus"))
                if getattr(profile, key) is not None
            ]
        problems += _misplaced(where, profile, profile.scheduler or name)
    return problems


def _misplaced(where: str, profile: ClusterIn, scheduler: str) -> list[str]:
    """Keys that only one kind of scheduler has a use for."""
    problems = []
    if scheduler != "gridengine" and scheduler in SCHEDULERS:
        problems += [f"{where}.{key}: only a gridengine cluster has this" for key in ("names", "notify") if getattr(profile, key)]
        problems += [f"{where}.notify: only a gridengine cluster has this"] if profile.notify is False else []
    if scheduler in SCHEDULERS and profile.options:
        problems.append(f"{where}.options: only clusters of a plugin have these, but {scheduler} is built in")
    if scheduler == "local" and profile.legs_ahead:
        problems.append(f"{where}.legs-ahead: jobs of the local queue may submit, so no legs are queued ahead")
    if (profile.legs_ahead or 0) > _MOST_AHEAD:
        problems.append(f"{where}.legs-ahead: found {profile.legs_ahead}, expected at most {_MOST_AHEAD}: each is a job in the queue")
    return problems + (_misnamed(where, profile.names) if scheduler == "gridengine" else [])


def _misnamed(where: str, names: Mapping[str, str]) -> list[str]:
    problems = []
    spelled = [key.replace("_", "-") for key in names]
    for index, (key, name) in enumerate(names.items()):
        alike = spelled[index]
        if alike not in KNOWN_NAMES:
            problems.append(f"{where}.names.{key}: unknown key{did_you_mean(key, KNOWN_NAMES)}; expected one of {', '.join(KNOWN_NAMES)}")
        elif alike in spelled[:index]:
            problems.append(f"{where}.names.{key}: found twice, with - and with _; expected once")
        elif problem := misnamed(alike, name):
            problems.append(f"{where}.names.{key}: found {name!r}, {problem}")
    return problems


def _either(words: tuple[str, ...]) -> str:
    return f"{', '.join(words[:-1])} or {words[-1]}"


_VARIABLE = re.compile(r"\$(?:\{([A-Za-z_][A-Za-z0-9_]*)\}|([A-Za-z_][A-Za-z0-9_]*))")


def _unset(root: str | None, env: Mapping[str, str]) -> list[str]:
    names = [match[1] or match[2] for match in _VARIABLE.finditer(root or "")] + (["HOME"] if (root or "").startswith("~") else [])
    stray = ["found a $ without a variable name, expected a variable such as $WORK"] if "$" in _VARIABLE.sub("", root or "") else []
    return [f"found ${name}, which is not set here" for name in names if not env.get(name)] + stray


def _expanded(root: str | None, env: Mapping[str, str]) -> Path | None:
    if root is None:
        return None
    home = f"$HOME{root[1:]}" if root.startswith("~") else root
    return Path(_VARIABLE.sub(lambda match: env[match[1] or match[2]], home)).absolute()


def _dotted(keys: KeyPath) -> str:
    spelled = (key if index == 1 else key.replace("_", "-") for index, key in enumerate(keys))  # the second is a profile's name
    return ".".join(spelled) or "the file"
