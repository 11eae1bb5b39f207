"""The list of verbs: a file each (or a few that belong together). Importing one loads typer and nothing heavier."""

from __future__ import annotations

import typer

from onward.cli import (
    backup,
    checkpoints,
    clean,
    clone,
    cluster,
    clusters,
    control,
    doctor,
    epilog,
    gateway,
    import_,
    logs,
    pipeline,
    pipeline_run,
    pipeline_summary,
    report,
    request,
    runs,
    schema,
    show,
    submit,
    sync,
    tend,
    token,
    top,
    up,
)
from onward.cli.desk import NamesARun


def register(app: typer.Typer) -> None:
    app.command("submit", cls=submit.TakesACommand)(submit.submit)
    app.command("run", cls=submit.TakesACommand)(submit.run)
    app.command("runs")(runs.runs)
    app.command("show", cls=NamesARun)(show.show)
    app.command("logs", cls=NamesARun)(logs.logs)
    app.command("cancel", cls=NamesARun)(control.cancel)
    app.command("stop", cls=NamesARun)(control.stop)
    app.command("resume", cls=NamesARun)(control.resume)
    app.command("clone", cls=NamesARun)(clone.clone)
    app.command("checkpoints", cls=NamesARun)(checkpoints.checkpoints)
    app.command("cluster")(cluster.cluster)
    app.command("clusters")(clusters.clusters)
    app.command("doctor")(doctor.doctor)
    app.command("tend")(tend.tend)
    app.command("clean")(clean.clean)
    app.command("top")(top.top)
    app.command("schema")(schema.schema)
    app.command("up")(up.up)
    app.add_typer(token.app, name="token")
    app.command("backup")(backup.backup)
    app.command("report")(report.report)
    app.command("request")(request.request)
    app.command("sync")(sync.sync)
    pipeline_run.register(pipeline.app)
    pipeline_summary.register(pipeline.app)
    app.add_typer(pipeline.app, name="pipeline")
    app.add_typer(import_.app, name="import")
    app.add_typer(epilog.app, name="epilog")
    app.add_typer(gateway.app, name="gateway")
