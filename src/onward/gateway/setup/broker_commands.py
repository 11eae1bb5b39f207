"""What the administrator of the broker types, so that a gateway may work there. Pure."""

from __future__ import annotations

import shlex
from pathlib import Path

from onward.gateway.rabbitmq.connection import Broker
from onward.model.requests.gateway_settings import GatewaySettings

_OWN = r"onward\..*"  # the gateway's queues, and those for the replies to its own user
_NAMELESS = r"amq\.gen.*"  # in which `onward request --status` gets its answer


def broker_commands(broker: Broker, settings: GatewaySettings, password_file: Path | None) -> list[str]:
    """`password_file`: None where the user is there already."""
    vhost, user = shlex.quote(broker.vhost), shlex.quote(broker.user)
    old = [name.replace(".", r"\.") for name in (settings.v1.jobs, settings.v1.results)] if settings.v1.enabled else []
    own = f"^({'|'.join([_OWN, _NAMELESS, *old])})$"
    publish = rf"^(amq\.default|{_OWN})$"
    return [
        *([f"rabbitmqctl add_vhost {vhost}"] if broker.vhost != "/" else []),
        *([f"rabbitmqctl add_user {user} < {shlex.quote(str(password_file))}"] if password_file else []),
        f"rabbitmqctl set_permissions -p {vhost} {user} {shlex.quote(own)} {shlex.quote(publish)} {shlex.quote(own)}",
    ]
