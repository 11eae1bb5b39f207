"""What a route asks for: the services, and who is asking."""

from __future__ import annotations

from typing import Annotated, cast

from fastapi import Depends, Request

from onward.api.access.caller import ApiCaller
from onward.api.access.rights.route_lookup import Route
from onward.api.services import Services
from onward.errors import NotAllowed


def _services(request: Request) -> Services:
    return cast(Services, request.state.services)


def _caller(request: Request) -> ApiCaller:
    return cast(ApiCaller, request.state.caller)


async def admitted(request: Request) -> None:
    """Of every route: what runs is what the gate judged. It cannot be another one; were it, nothing would be done."""
    route: Route | None = getattr(request.state, "route", None)
    if route is None or route.endpoint is not request.scope["endpoint"]:
        raise NotAllowed("the access gate did not let this request through to this route", hint="internal error")


Svc = Annotated[Services, Depends(_services)]
Who = Annotated[ApiCaller, Depends(_caller)]
