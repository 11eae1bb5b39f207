"""`onward schema`: the JSON Schema of a params file or of a pipeline's, for editors."""

from __future__ import annotations

from typing import Annotated

import typer

from onward.cli.output import json_to_stdout


def schema(
    of: Annotated[str, typer.Argument(metavar="[params|pipeline]", help="params or pipeline.")] = "params",
) -> None:
    """Print the JSON Schema of a params or pipeline file."""
    from onward.errors import InvalidInput
    from onward.inputs.params.sections import json_schema
    from onward.inputs.pipeline.sections import pipeline_schema

    if of not in ("params", "pipeline"):
        raise InvalidInput(f"no schema named {of!r}", hint="onward schema params, or onward schema pipeline")
    json_to_stdout(json_schema() if of == "params" else pipeline_schema())
