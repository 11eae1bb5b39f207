"""The list of verbs: a file each (or a few that belong together). Importing one loads typer and nothing heavier."""

from __future__ import annotations

import typer

from onward.cli import help_pages, schema
from onward.cli.clusters import listing as clusters
from onward.cli.clusters import snapshot
from onward.cli.context import RunCommand
from onward.cli.maintenance import clean, doctor, tend
from onward.cli.pipelines import plan, run, summary
from onward.cli.requests import dead, gateway, gateway_setup, request, stored
from onward.cli.runs import checkpoints, control, fetch, logs, report, show, top
from onward.cli.runs import listing as runs
from onward.cli.server import backup, epilog, imports, sync, tokens, up
from onward.cli.submit import clone, commands


def register(app: typer.Typer) -> None:
    app.command("submit", cls=commands.SubmitCommand)(commands.submit)
    app.command("run", cls=commands.SubmitCommand)(commands.run)
    app.command("runs")(runs.runs)
    app.command("show", cls=RunCommand)(show.show)
    app.command("logs", cls=RunCommand)(logs.logs)
    app.command("cancel", cls=RunCommand)(control.cancel)
    app.command("stop", cls=RunCommand)(control.stop)
    app.command("resume", cls=RunCommand)(control.resume)
    app.command("adopt", cls=RunCommand)(control.adopt)
    app.command("clone", cls=RunCommand)(clone.clone)
    app.command("checkpoints", cls=RunCommand)(checkpoints.checkpoints)
    app.command("fetch", cls=RunCommand)(fetch.fetch)
    app.command("cluster")(snapshot.cluster)
    app.command("clusters")(clusters.clusters)
    app.command("doctor")(doctor.doctor)
    app.command("tend")(tend.tend)
    app.command("clean")(clean.clean)
    app.command("top")(top.top)
    app.command("help")(help_pages.show_page)
    app.command("schema")(schema.schema)
    app.command("up")(up.up)
    app.add_typer(tokens.app, name="token")
    app.command("backup")(backup.backup)
    app.command("report")(report.report)
    app.command("request")(request.request)
    app.command("sync")(sync.sync)
    run.register(plan.app)
    summary.register(plan.app)
    app.add_typer(plan.app, name="pipeline")
    app.add_typer(imports.app, name="import")
    app.add_typer(epilog.app, name="epilog")
    stored.register(gateway.app)
    dead.register(gateway.app)
    gateway_setup.register(gateway.app)
    app.add_typer(gateway.app, name="gateway")
