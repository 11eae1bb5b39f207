"""`onward clone`: a run again, of the code that it froze, with other values."""

from __future__ import annotations

import inspect
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from onward.cli.context import RunArgument, open_hosts
from onward.cli.output import to_stderr
from onward.cli.submit.answer import announce, show_preview
from onward.cli.submit.commands import add_submit_flags

if TYPE_CHECKING:
    from onward.model.spec import RunDraft

_NOT_OURS = ("words", "no_freeze", "quiet", "code_exclude", "scheduler_option")  # the code is the other run's, frozen or where it stands


def clone(run: str, **options: Any) -> None:
    """Queue a run again, with changes.

    It uses the code that RUN froze and RUN's spec; flags change the spec: onward clone RUN --param lr=0.01.
    """
    from onward.errors import InvalidInput

    hosts = open_hosts()
    found = hosts.find(run, acting=True)
    draft = _changed(found.host.draft(run=found.run), options)
    host, name = hosts.host_of(draft.cluster)
    if host.hostname != found.host.hostname:
        raise InvalidInput(
            f"cluster {draft.cluster} is {_where(host.hostname)}, and the code of {run} is {_where(found.host.hostname)}",
            hint="submit it from where the code is",
        )
    draft = replace(draft, cluster=name)
    if options["dry_run"]:
        show_preview(found.host.clone_preview(draft, run=found.run), host=found.host.hostname, tasks=1, json=options["json"])
        return
    announce(found.host, [found.host.clone(draft, run=found.run)], json=options["json"])


def _changed(draft: RunDraft, options: dict[str, Any]) -> RunDraft:
    from onward.errors import InvalidInput
    from onward.inputs.params.flags import FLAGS, override
    from onward.inputs.scripts.contradictions import replaced

    flags = {flag: options[flag.replace("-", "_")] for flag in FLAGS}
    if draft.script and (options["param"] or flags["launcher"]):
        flag = "--param" if options["param"] else "--launcher"
        raise InvalidInput(f"{flag} does not apply to a batch script", hint="its arguments were given when it was submitted")
    if draft.script:
        keys = [FLAGS[flag][2] for flag, value in flags.items() if value is not None and FLAGS[flag][1] == "resources"]
        draft = replace(draft, resources=replaced(draft.resources, keys))
    changed = override(
        draft,
        flags=flags,
        name=options["name"],
        experiment=options["experiment"],
        cluster=options["cluster"],
        params=options["param"] or (),
        variables=options["env"] or (),
        modules=options["module"] or (),
        setup=options["setup"] or (),
    )
    for key in changed.params.keys() - draft.params.keys():
        to_stderr(f"note: {draft.name} had no param {key}; it had {', '.join(draft.params) or 'none'}")
    return changed


def _where(host: str | None) -> str:
    return f"on {host}" if host else "on this machine"


add_submit_flags(
    clone, without=_NOT_OURS, first=[inspect.Parameter("run", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=RunArgument)]
)
