"""`onward schema`: the JSON Schema of a params file, for editors."""

from __future__ import annotations

from onward.cli.render import out_json


def schema() -> None:
    """Print the JSON Schema of params.yaml, for editors."""
    from onward.pipelines.sections import json_schema

    out_json(json_schema())
