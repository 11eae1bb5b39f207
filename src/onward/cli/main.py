"""`onward`: the verbs, and the one place that turns errors into words and exit codes. Verbs load what they need when they run."""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer

from onward import __version__
from onward.errors import OnwardError

app = typer.Typer(
    name="onward",
    help="Run a training to its end, on the cluster you have, through as many jobs as it takes.",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"onward {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and leave.")] = False,
) -> None:
    pass


def _register() -> None:
    from onward.cli import verbs

    verbs.register(app)


def main() -> None:
    """The entry point. Errors of ours become one or two lines on stderr and the exit code of their class."""
    _register()
    try:
        app(standalone_mode=True)
    except OnwardError as error:
        sys.stderr.write(f"onward: {error.message}\n")
        if error.hint:
            sys.stderr.write(f"  → {error.hint}\n")
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        sys.exit(130)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
