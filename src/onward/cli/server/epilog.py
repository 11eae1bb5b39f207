"""`onward epilog`: have schedulers say when a job has ended."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from onward.cli.output import to_stderr, to_stdout
from onward.cli.server.tokens import DbOption

app = typer.Typer(name="epilog", help="Let schedulers notify the server when a job ends.", no_args_is_help=True)


@app.callback()
def _only() -> None:
    pass


@app.command("install")
def install(
    url: Annotated[str, typer.Option("--url", help="The server's address, reachable from the scheduler's machines.")],
    dir: Annotated[Path, typer.Option("--dir", metavar="FOLDER", help="Where to write the scripts.")] = Path("/etc/onward"),
    token_file: Annotated[
        str | None,
        typer.Option(
            "--token-file", metavar="FILE", help="A file with a webhook token; - for stdin. Default: create one in this machine's database."
        ),
    ] = None,
    renew: Annotated[
        bool, typer.Option("--renew", help="Write a new secret over the existing one; the old one is valid until revoked.")
    ] = False,
    cafile: Annotated[
        Path | None, typer.Option("--cafile", metavar="FILE", help="The certificate to trust, if the server uses its own.")
    ] = None,
    slurm_user: Annotated[str | None, typer.Option("--slurm-user", metavar="USER", help="SlurmUser. Default: you.")] = None,
    gridengine_user: Annotated[
        str | None, typer.Option("--gridengine-user", metavar="USER", help="The user that runs the queue's epilog. Default: you.")
    ] = None,
    db: DbOption = None,
) -> None:
    """Write epilog scripts for Slurm's controller and Grid Engine's queues, and print the configuration they need.

    They post a signed hint that a job has ended. A hint makes the server look at the scheduler; it decides nothing.
    """
    import time

    from onward.errors import NotFound
    from onward.operations.admin import epilog_scripts
    from onward.operations.tracker_access.location import open_tracker, tracker_location
    from onward.tracker.access.tokens import Scope

    def secret() -> str:
        if token_file == "-":
            return sys.stdin.readline()
        if token_file is not None:
            try:
                return Path(token_file).read_text(errors="replace")
            except OSError as error:
                raise NotFound(f"--token-file {token_file} cannot be read: {error.strerror}") from error
        with open_tracker(tracker_location(os.environ, db)) as opened:
            return opened.tokens.create(Scope.WEBHOOK, name=f"epilogs in {dir.absolute()}", now=time.time())[1].text

    done = epilog_scripts.install_epilogs(
        dir, url, secret=secret, renew=renew, cafile=cafile, slurm_user=slurm_user, gridengine_user=gridengine_user
    )
    for path in done.written:
        to_stderr(f"wrote {path}")
    for path in done.kept:
        to_stderr(f"{path} exists and was kept; --renew writes a new one")
    for words in epilog_scripts.installation_steps(done):
        to_stdout(words)
