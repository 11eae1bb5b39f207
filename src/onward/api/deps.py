"""What a route asks for: the services, and who is asking."""

from __future__ import annotations

from typing import Annotated, cast

from fastapi import Depends, Request

from onward.api.admission import Caller
from onward.api.services import Services


def _services(request: Request) -> Services:
    return cast(Services, request.app.state.services)


def _caller(request: Request) -> Caller:
    return cast(Caller, request.state.caller)


Svc = Annotated[Services, Depends(_services)]
Who = Annotated[Caller, Depends(_caller)]
