"""`onward request`: ask a gateway for a training, from any machine that reaches its broker."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from onward.cli.context import JsonOption
from onward.cli.output import coloured, json_to_stdout, safe, to_stderr, to_stdout
from onward.cli.requests.gateway import quiet_library

if TYPE_CHECKING:
    from onward.gateway.messages.reply import GatewayReply
    from onward.sender import Sender, Sent


def request(
    recipe: Annotated[str | None, typer.Argument(metavar="RECIPE", help="What to train: a recipe of the gateway's site.")] = None,
    input: Annotated[list[str] | None, typer.Option("--input", "-i", metavar="NAME=URL", help="An input file; repeat.")] = None,
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="A setting of the recipe; quote digits that are a text: '\"7\"'; repeat."),
    ] = None,
    resource: Annotated[
        list[str] | None, typer.Option("--resource", metavar="NAME=VALUE", help="As in a params file: mem=16G; repeat.")
    ] = None,
    deadline: Annotated[
        str | None, typer.Option("--deadline", metavar="TIME", help="Cancel it after this time: 12:00:00, or 2-0 for two days.")
    ] = None,
    priority: Annotated[int, typer.Option("--priority", min=0, max=9, help="Higher runs first.")] = 0,
    id: Annotated[
        str | None,
        typer.Option("--id", metavar="ID", help="Its id: a request sent twice is trained once. Without RECIPE: a request sent earlier."),
    ] = None,
    wait: Annotated[bool, typer.Option("--wait", help="Wait for the reply, and store its results.")] = False,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FOLDER", help="Where results go. Default: a folder named after the id.")
    ] = None,
    status: Annotated[str | None, typer.Option("--status", metavar="ID", help="Show the state of a request.")] = None,
    cancel: Annotated[str | None, typer.Option("--cancel", metavar="ID", help="Cancel a request.")] = None,
    sender: Annotated[str, typer.Option("--sender", metavar="NAME", help="Who sends it. Default: the broker's user.")] = "",
    broker: Annotated[
        str | None, typer.Option("--broker", metavar="URL", help="amqps://HOST/. Default: from the settings or RABBITMQ_HOST.")
    ] = None,
    json: JsonOption = False,
) -> None:
    """Send a training request to a gateway.

    Prints the request's id when the broker has it; with --wait also the reply, and stores its results. User and password of the broker
    come from the settings' [gateway], or RABBITMQ_USER and RABBITMQ_PASSWORD. Exits with 7 if the reply is not done.
    """
    from onward.errors import InvalidInput
    from onward.sender import Sender

    quiet_library()
    if sum(map(bool, (recipe or (id and wait), status, cancel))) != 1:
        raise InvalidInput("name a recipe, or --status ID, --cancel ID, or --id ID --wait", hint="onward request --help shows how")
    asked = Sender(broker, name=sender)
    if status:
        _show_status(asked.sent(status).status(), json)
        return
    if cancel:
        _show_cancel(cancel, asked.sent(cancel).cancel())
        return
    sent = _send(asked, recipe, input, set_, resource, deadline, priority, id) if recipe else asked.sent(id or "")
    if wait:
        _await(sent, output or Path(sent.id), json)
    elif json:
        json_to_stdout({"schema": 1, "id": sent.id})
    else:
        to_stdout(sent.id)


def _send(
    asked: Sender,
    recipe: str,
    inputs: list[str] | None,
    settings: list[str] | None,
    resources: list[str] | None,
    deadline: str | None,
    priority: int,
    id: str | None,
) -> Sent:
    import time

    from onward.model.quantity import parse_duration

    return asked.request(
        recipe,
        dict(_pairs("--input", inputs)),
        {name: _value(value) for name, value in _pairs("--set", settings)},
        resources={name: _value(value) for name, value in _pairs("--resource", resources)},
        deadline=time.time() + parse_duration(deadline) if deadline else None,
        priority=priority,
        id=id,
    )


def _pairs(option: str, given: list[str] | None) -> list[tuple[str, str]]:
    """A name may hold an equals sign no more than an address before its own."""
    from onward.errors import InvalidInput

    pairs = [one.partition("=") for one in given or ()]
    for name, equals, _ in pairs:
        if not name or not equals:
            raise InvalidInput(f"{option} {name!r} has no value", hint=f"write {option} 'NAME=…'")
    names = [name for name, _, _ in pairs]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise InvalidInput(f"{option} {twice!r} appears twice")
    return [(name, value) for name, _, value in pairs]


def _value(text: str) -> Any:
    """A number, true or false, as JSON has them; else a text."""
    import json

    try:
        value = json.loads(text)
    except ValueError:
        return text
    return value if isinstance(value, int | float | bool | str) else text


def _await(sent: Sent, folder: Path, json: bool) -> None:
    kept: list[Path] = []

    def keep(answer: GatewayReply) -> None:
        kept.extend(answer.save(folder) if answer.results else ())

    to_stderr(f"request {sent.id} is sent; Ctrl-C does not cancel it, and `onward request --id {sent.id} --wait` waits again")
    before: dict[str, Any] = {}

    def tell(body: Mapping[str, Any]) -> None:
        metrics = body.get("metrics") or {}
        to_stderr(_progress({**body, "metrics": {name: value for name, value in metrics.items() if before.get(name) != value}}))
        before.update(metrics)

    answer = sent.wait(told=tell, keep=keep)
    if json:
        shown = {key: value for key, value in vars(answer).items() if key != "results"}
        json_to_stdout({"schema": 1, **shown, "results": {name: str(path) for name, path in zip(answer.results, kept, strict=True)}})
    else:
        said = [*answer.reason.splitlines(), *(f"  → {line}" for line in answer.next.splitlines())]
        to_stderr(f"{coloured(safe(answer.state))}: " + "\n".join(map(safe, said)))
        for line in [] if answer.done else answer.log_tail.splitlines():
            to_stderr(safe(line))
        for path in kept:
            to_stdout(str(path))
    if not answer.done:
        raise typer.Exit(7)


def _progress(body: Mapping[str, Any]) -> str:
    """One line of what is known so far."""
    parts = [str(body.get("state", "")).replace("_", " ")]
    if body.get("leg"):
        parts.append(f"leg {body['leg']}")
    if isinstance(body.get("percent"), int | float):
        parts.append(f"{body['percent']:.0f} %")
    parts += [f"{name} {value:.4g}" for name, value in (body.get("metrics") or {}).items() if isinstance(value, int | float)][-3:]
    if body.get("words") and len(parts) < 3:
        parts.append(str(body["words"]))
    return safe(", ".join(part for part in parts if part))


def _show_cancel(id: str, body: Mapping[str, Any]) -> None:
    _must_be_known(body)
    if body.get("outcome"):
        to_stderr(f"request {id} was already over: {safe(str(body.get('state')))}")
    elif body:
        to_stderr(f"request {id} is being cancelled; its reply will say so")
    else:
        to_stderr(f"the message that cancels request {id} is queued; no gateway answers now, the next one that runs will cancel it")


def _must_be_known(body: Mapping[str, Any]) -> None:
    from onward.errors import NotFound

    if body.get("state") == "unknown":
        raise NotFound(f"the gateway has no request {body.get('id', '')}".rstrip(), hint=str(body.get("words") or ""))


def _show_status(body: Mapping[str, Any], json: bool) -> None:
    if json:
        json_to_stdout({"schema": 1, **body})
    elif body.get("state") != "unknown":
        run = f", run {body['run']}" if body.get("run") else ""
        to_stdout(f"{_progress({**(body.get('progress') or {}), **{key: body[key] for key in ('state', 'words') if body.get(key)}})}{run}")
    _must_be_known(body)
