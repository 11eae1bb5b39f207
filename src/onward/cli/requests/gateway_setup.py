"""`onward gateway init`: set a gateway up on this machine."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from onward.cli.output import to_stderr, to_stdout


def register(app: typer.Typer) -> None:
    app.command("init")(init)


def init(
    broker: Annotated[
        str | None,
        typer.Option("--broker", metavar="HOST", help="The broker: a host, or amqp://HOST:PORT without TLS. Default: RABBITMQ_HOST."),
    ] = None,
    vhost: Annotated[str | None, typer.Option("--vhost", metavar="NAME", help="Its virtual host. Default: /.")] = None,
    user: Annotated[
        str | None, typer.Option("--user", metavar="NAME", help="The gateway's user there. Default: RABBITMQ_USER, or gateway.")
    ] = None,
    recipe: Annotated[
        str | None, typer.Option("--recipe", metavar="NAME", help="Copy this recipe, which comes with Onward, to the site's recipes.")
    ] = None,
    v1: Annotated[bool, typer.Option("--v1", help="Also take messages of protocol v1.")] = False,
    systemd: Annotated[bool, typer.Option("--systemd", help="Write a systemd unit for this user.")] = False,
    system: Annotated[bool, typer.Option("--system", help="Write a systemd unit for the machine, in /etc.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
) -> None:
    """Write what a gateway needs on this machine, and print the commands for the broker's administrator.

    It shows all changes and asks. What is there already is kept; run twice, it changes nothing.
    """
    from onward.cli.context import current_folder
    from onward.gateway.setup.plan import SetupOptions, plan_setup

    options = SetupOptions(broker=broker, vhost=vhost, user=user, recipe=recipe, v1=v1, systemd=systemd, system=system)
    setup = plan_setup(options, os.environ, current_folder())
    for path in setup.kept:
        to_stderr(f"kept as it is: {path}")
    for change in setup.changes:
        to_stderr(change.shown())
    if setup.changes and not yes and not typer.confirm("write this?", err=True):
        raise typer.Exit(1)
    for change in setup.changes:
        change.write()
        to_stderr(f"wrote {change.path}")
    to_stderr("\nat the broker, its administrator runs (add_user reads the password from the file):")
    for line in setup.commands:
        to_stdout(line)
    to_stderr("\nthen:")
    for line in setup.next:
        to_stderr(f"  {line}")
