"""The body of a call: any JSON object. MLflow's clients send fields that servers of other versions do not know; those are passed over."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Body as FromBody

Body = Annotated[dict[str, Any], FromBody(description="As MLflow's REST API says; unknown fields are ignored.")]
