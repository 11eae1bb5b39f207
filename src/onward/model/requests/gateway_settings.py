"""The gateway of a site, as its settings say: which broker, what senders may ask for, and how much of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

_WEEK = 7 * 24 * 3600


@dataclass(frozen=True, kw_only=True)
class V1Settings:
    """The first protocol: applications that know neither recipes nor durable queues."""

    enabled: bool = False
    recipe: str = "patchwise"  # what every message of it asks for
    jobs: str = "hpc-jobs"
    results: str = "hpc-results"
    rodan: str | None = None  # where its inputs are, which have a path alone


@dataclass(frozen=True, kw_only=True)
class GatewaySettings:
    url: str | None = None  # amqp(s)://host:port/vhost, without user and password; None: RABBITMQ_HOST or HPC_RABBITMQ_HOST
    user: str | None = None
    password_file: Path | None = None
    ca_file: Path | None = None  # who signed the broker's certificate; None: whom this machine trusts
    recipes: Path | None = None  # the site's own, before those that come with Onward
    hosts: tuple[str, ...] = ()  # that inputs may come from
    server: str | None = None  # where senders reach `onward up`, to fetch results that are too large for a message
    inline: int = 8  # MiB of results inside a reply
    message: int = 16  # MiB that a message to us may have
    kept: int = _WEEK  # seconds that the address of a result opens
    quota: int = 1000  # open requests of one sender; 0: no bound
    queue: int = 10_000  # open requests of all; 0: no bound
    v1: V1Settings = field(default_factory=V1Settings)
