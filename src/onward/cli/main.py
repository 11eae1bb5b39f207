"""`onward`: the verbs, and the one place that turns errors into words and exit codes. Verbs load what they need when they run."""

from __future__ import annotations

import io
import os
import sys
from typing import Annotated

import typer

from onward import __version__
from onward.errors import OnwardError
from onward.extras import missing_extra

app = typer.Typer(
    name="onward",
    help="Run a training to its end on the cluster you have, in as many jobs as it takes.",
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
    version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")] = False,
) -> None:
    pass


def _register() -> None:
    from onward.cli import verbs

    if not app.registered_commands:
        verbs.register(app)


def main() -> None:
    """The entry point. An error becomes one or two lines on stderr and the exit code of its class; ONWARD_TRACEBACK=1 shows a traceback."""
    _register()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # do not fail on a terminal that cannot show a character
    try:
        try:
            app(standalone_mode=True)
        finally:
            sys.stdout.flush()  # here, where a pipe that nobody reads any more is ours to deal with
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    except OnwardError as error:
        sys.exit(_complain(error.message, error.hint, error.exit_code))
    except KeyboardInterrupt:
        sys.exit(130)
    except ModuleNotFoundError as error:
        missing = missing_extra(error)
        sys.exit(_complain(missing.message, missing.hint, missing.exit_code) if missing else _internal(error))
    except OSError as error:
        sys.exit(_complain(str(error), "check that the disk is mounted and not full, and that the folder is yours", 1))
    except Exception as error:
        sys.exit(_internal(error))


def _internal(error: Exception) -> int:
    if os.environ.get("ONWARD_TRACEBACK"):
        raise error
    return _complain(f"internal error: {type(error).__name__}: {error}", "run it again with ONWARD_TRACEBACK=1 and report the output", 1)


def _complain(message: str, hint: str, code: int) -> int:
    sys.stderr.write(f"onward: {message}\n")
    if hint:
        sys.stderr.write(f"  → {hint}\n")
    return code
