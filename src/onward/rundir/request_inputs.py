"""What a request's run was given, in its folder: the request file for the training, and the order to fetch its inputs.

The order holds addresses and a token, so it lies where nobody else may read, and both are taken out of it when the run is over.
"""

from __future__ import annotations

import json
import os
from dataclasses import replace

from onward.model.plain_data import value_from_json, value_to_json
from onward.model.requests.inputs import RunInputs
from onward.rundir.layout import RunDir
from onward.sdk.atomic_files import write_whole


def write_inputs(dir: RunDir, given: RunInputs) -> None:
    """At submit."""
    record = {
        "schema": 1,
        "request": given.request,
        "recipe": given.recipe,
        "settings": dict(given.settings),
        "inputs": {one.name: str(dir.inputs / one.name) for one in given.fetch},
    }
    write_whole(dir.request, json.dumps(record, indent=1), mode=0o600)
    dir.inputs_order.parent.mkdir(mode=0o700, exist_ok=True)
    os.chmod(dir.inputs_order.parent, 0o700)
    _write_order(dir, given)


def read_inputs(dir: RunDir) -> RunInputs | None:
    """The order; None for a run that no request asked for."""
    try:
        return value_from_json(RunInputs, json.loads(dir.inputs_order.read_bytes()))
    except FileNotFoundError:
        return None


def ask_for_token(dir: RunDir) -> None:
    """The application refuses the order's token: whoever submitted the run can log in again."""
    write_whole(dir.token_refused, "", mode=0o600)


def is_token_asked(dir: RunDir) -> bool:
    return dir.token_refused.exists()


def answer_token(dir: RunDir, token: str) -> None:
    """`token` may be the same one: then there is no better."""
    given = read_inputs(dir)
    if given and given.token and token != given.token:
        _write_order(dir, replace(given, token=token))
    dir.token_refused.unlink(missing_ok=True)


def forget_addresses(dir: RunDir) -> None:
    """The run is over: nothing is fetched any more, and nobody shall find the token, or an address that has a key in it."""
    given = read_inputs(dir)
    if given and (given.token or any(one.url for one in given.fetch)):
        _write_order(dir, replace(given, token="", fetch=tuple(replace(one, url="") for one in given.fetch)))


def _write_order(dir: RunDir, given: RunInputs) -> None:
    write_whole(dir.inputs_order, json.dumps(value_to_json(given)), mode=0o600)
