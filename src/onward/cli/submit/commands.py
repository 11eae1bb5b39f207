"""`onward submit` queues a run and leaves; `onward run` queues it and follows. Three doors: a params file, a flag line, a batch script."""

from __future__ import annotations

import inspect
import json as json_module
from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand

from onward.cli.context import JsonOption, current_folder, open_context, open_hosts
from onward.cli.output import to_stderr
from onward.cli.submit.answer import announce, leg_words, show_preview

if TYPE_CHECKING:
    from onward.inputs.scripts.submit_line import GivenOption
    from onward.model.spec import RunDraft
    from onward.operations.context import OperationsContext
    from onward.operations.hosts.answers import SubmittedRun
    from onward.operations.hosts.local import Host

Text = str | None
_FILES = (".yaml", ".yml")
_FOREIGN = "--scheduler-option"


class SubmitCommand(TyperCommand):
    """All words from a command's first on belong to it, flags too, also without `--` before it; our flags may follow a params file.

    What follows `--` is a command, whatever its name: the mark is kept, as the first word.
    """

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        args = self._without_foreign(ctx, args)
        ctx.allow_interspersed_args = False
        words = self.make_parser(ctx).parse_args(list(args))[0].get("words") or [""]
        ctx.allow_interspersed_args = words[0].endswith(_FILES)
        before = len(args) - len(words)
        if not ctx.allow_interspersed_args and before > 0 and args[before - 1] == "--":
            args = [*args[:before], "--", *args[before:]]
        return super().parse_args(ctx, args)

    def _without_foreign(self, ctx: Any, args: list[str]) -> list[str]:
        """What only sbatch or qsub know, in flags of our own that nobody writes."""
        from onward.inputs.scripts.submit_line import split_off

        own = {name: not getattr(parameter, "is_flag", False) for parameter in self.params for name in parameter.opts}
        own |= dict.fromkeys(ctx.help_option_names, False)
        kept, given = split_off(args, own)
        options_text = (json_module.dumps([one.family, one.option.name, one.option.value]) for one in given)
        return [*(f"{_FOREIGN}={text}" for text in options_text), *kept]


def _option(*names: str, of: str, help: str) -> Any:
    return typer.Option(*names, metavar=of, help=help, show_default=False)


Words = Annotated[list[str] | None, typer.Argument(metavar="PARAMS.YAML | SCRIPT [ARGS...] | -- COMMAND...", hidden=True)]
Name = Annotated[Text, _option("--name", "-J", of="NAME", help="Name of the run. Default: from the script's name.")]
Experiment = Annotated[Text, _option("--experiment", of="NAME", help="Its experiment. Default: its name.")]
ClusterName = Annotated[Text, _option("--cluster", of="NAME", help="auto, local, slurm, gridengine, or a profile of your settings.")]
Time = Annotated[Text, _option("--time", "-t", of="TIME", help="Time limit of one leg: minutes, HH:MM:SS or D-HH:MM:SS.")]
Mem = Annotated[Text, _option("--mem", of="SIZE", help="Memory per node, as in 32G.")]
Cpus = Annotated[Text, _option("--cpus-per-task", "-c", of="N", help="CPUs per task.")]
Nodes = Annotated[Text, _option("--nodes", "-N", of="N", help="Nodes.")]
Ntasks = Annotated[Text, _option("--ntasks", "-n", of="N", help="Tasks.")]
NtasksPerNode = Annotated[Text, _option("--ntasks-per-node", of="N", help="Tasks per node.")]
Gpus = Annotated[Text, _option("--gpus", "-G", of="[TYPE:]N", help="GPUs, as in 2 or a100:2.")]
Gres = Annotated[Text, _option("--gres", of="NAME[:TYPE]:N", help="Generic resources, as in gpu:1.")]
Partition = Annotated[Text, _option("--partition", "-p", of="NAME", help="Partition or queue.")]
Account = Annotated[Text, _option("--account", "-A", of="NAME", help="Account to charge.")]
Qos = Annotated[Text, _option("--qos", "-q", of="NAME", help="Quality of service.")]
Constraint = Annotated[Text, _option("--constraint", "-C", of="FEATURES", help="Node features.")]
Reservation = Annotated[Text, _option("--reservation", of="NAME", help="Reservation.")]
Nodelist = Annotated[Text, _option("--nodelist", "-w", of="NODES", help="Nodes to use.")]
Exclude = Annotated[Text, _option("--exclude", "-x", of="NODES", help="Nodes not to use.")]
MailUser = Annotated[Text, _option("--mail-user", of="ADDRESS", help="Address for the scheduler's mail.")]
MailType = Annotated[Text, _option("--mail-type", of="WHEN", help="When the scheduler sends mail.")]
TotalTime = Annotated[Text, _option("--total-time", of="TIME", help="Limit on the time in all legs together.")]
MaxLegs = Annotated[Text, _option("--max-legs", of="N", help="Limit on the number of legs.")]
MaxRestarts = Annotated[Text, _option("--max-restarts", of="N", help="Failures in a row without a new checkpoint to allow. Default: 3.")]
MemMax = Annotated[Text, _option("--mem-max", of="SIZE", help="After out of memory, request more, up to this.")]
StallTime = Annotated[Text, _option("--stall-time", of="TIME", help="Restart a training without progress for this long.")]
Checkpoints = Annotated[Text, _option("--checkpoints", of="own", help="own: the training keeps its own checkpoints.")]
Every = Annotated[Text, _option("--checkpoint-every", of="TIME", help="How often run.should_checkpoint() returns True: auto, or a time.")]
Keep = Annotated[Text, _option("--keep", of="N", help="How many of the newest checkpoints to keep; the last two always stay. Default: 3.")]
KeepEvery = Annotated[Text, _option("--keep-every", of="STEPS", help="Keep the checkpoint of every Nth step for good.")]
BestMetric = Annotated[Text, _option("--best-metric", of="NAME", help="Keep the checkpoint that is best by this metric.")]
BestMode = Annotated[Text, _option("--best-mode", of="max|min", help="max or min. Default: max.")]
Launcher = Annotated[
    Text, _option("--launcher", of="NAME", help="What starts the processes: plain, srun, torchrun, mpirun or horovodrun. Default: plain.")
]
StopSignal = Annotated[
    Text, _option("--stop-signal", of="SIGNAL", help="Signal that asks the training to stop. Default: only the stop file.")
]
StopLead = Annotated[
    Text, _option("--stop-lead", of="TIME", help="Ask the training to stop this long before the end of a leg. Default: measured.")
]
Params = Annotated[
    list[str] | None, typer.Option("--param", "-P", metavar="NAME=VALUE", help="A value for {params.NAME}.", show_default=False)
]
Env = Annotated[list[str] | None, typer.Option("--env", metavar="NAME=VALUE", help="A variable for the training.", show_default=False)]
Modules = Annotated[
    list[str] | None, typer.Option("--module", metavar="NAME", help="A module to load before the training.", show_default=False)
]
Conda = Annotated[Text, _option("--conda", of="NAME|FOLDER", help="Conda environment to activate.")]
Venv = Annotated[Text, _option("--venv", of="FOLDER", help="Virtual environment to activate.")]
Setup = Annotated[
    list[str] | None, typer.Option("--setup", metavar="LINE", help="A bash line to run before the training.", show_default=False)
]
NoFreeze = Annotated[bool, typer.Option("--no-freeze", help="Run the code where it is, do not copy it.")]
CodeExclude = Annotated[
    list[str] | None,
    typer.Option("--code-exclude", metavar="GLOB", help="Link this path instead of copying it.", show_default=False),
]
Foreign = Annotated[list[str] | None, typer.Option(_FOREIGN, hidden=True)]
Quiet = Annotated[bool, typer.Option("--quiet", "-Q", help="Print no hints.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Print the exact job script and command; queue nothing.")]


def submit(
    words: Words = None,
    name: Name = None,
    experiment: Experiment = None,
    cluster: ClusterName = None,
    time: Time = None,
    mem: Mem = None,
    cpus_per_task: Cpus = None,
    nodes: Nodes = None,
    ntasks: Ntasks = None,
    ntasks_per_node: NtasksPerNode = None,
    gpus: Gpus = None,
    gres: Gres = None,
    partition: Partition = None,
    account: Account = None,
    qos: Qos = None,
    constraint: Constraint = None,
    reservation: Reservation = None,
    nodelist: Nodelist = None,
    exclude: Exclude = None,
    mail_user: MailUser = None,
    mail_type: MailType = None,
    total_time: TotalTime = None,
    max_legs: MaxLegs = None,
    max_restarts: MaxRestarts = None,
    mem_max: MemMax = None,
    stall_time: StallTime = None,
    checkpoints: Checkpoints = None,
    checkpoint_every: Every = None,
    keep: Keep = None,
    keep_every: KeepEvery = None,
    best_metric: BestMetric = None,
    best_mode: BestMode = None,
    launcher: Launcher = None,
    stop_signal: StopSignal = None,
    stop_lead: StopLead = None,
    param: Params = None,
    env: Env = None,
    module: Modules = None,
    conda: Conda = None,
    venv: Venv = None,
    setup: Setup = None,
    no_freeze: NoFreeze = False,
    code_exclude: CodeExclude = None,
    scheduler_option: Foreign = None,
    quiet: Quiet = False,
    dry_run: DryRun = False,
    json: JsonOption = False,
) -> None:
    """Queue a run.

    From a file, onward submit params.yaml, or a command, onward submit --time 24:00:00 --gpus 1 -- python train.py,
    or a batch script as it is: onward submit train_model.sh
    """
    host, drafts = _asked(dict(locals()))
    if dry_run:
        show_preview(host.preview(drafts[0], cwd=current_folder()), host=host.hostname, tasks=len(drafts), json=json)
        return
    submitted = _submit(host, drafts)
    announce(host, submitted, json=json)
    if not json and not quiet:
        from onward.operations.repair.timer_hint import hint_once

        _advise(drafts[0])
        for line in hint_once(open_context()) if host.hostname is None else ():
            to_stderr(line)


def run(**options: Any) -> None:
    """Queue a run and follow it to its end.

    It takes what submit takes. Ctrl-C stops following, never the run.
    """
    from onward.errors import InvalidInput

    host, drafts = _asked(options)
    if len(drafts) > 1:
        raise InvalidInput(
            f"the script is an array of {len(drafts)} tasks, but only one run can be followed", hint="onward submit queues them all"
        )
    if options["dry_run"]:
        show_preview(host.preview(drafts[0], cwd=current_folder()), host=host.hostname, tasks=1, json=False)
        return
    [submitted] = _submit(host, drafts)
    if words := leg_words(submitted):
        to_stderr(f"{submitted.name} runs{words}".replace(",", "", 1))
    if not options["quiet"]:
        _advise(drafts[0])
    from onward.cli.runs.follow import follow

    follow(host, submitted.folder)


def add_submit_flags(function: Any, *, without: Collection[str], first: Sequence[inspect.Parameter] = ()) -> None:
    """`run` takes what `submit` takes, and `clone` most of it: one list of flags for all."""
    signature = inspect.signature(submit, eval_str=True)
    taken = [*first, *(p for p in signature.parameters.values() if p.name not in without)]
    function.__signature__ = signature.replace(parameters=taken)
    function.__annotations__ = {parameter.name: parameter.annotation for parameter in taken}


add_submit_flags(run, without=("json",))


def _asked(options: dict[str, Any]) -> tuple[Host, list[RunDraft]]:
    """Where it goes, and the runs it makes: one, or one for each task of an array."""
    from onward.inputs.scripts.batch_script import expand_array

    hosts = open_hosts()
    draft = _draft(options, hosts.context)
    host, name = hosts.host_of(draft.cluster)
    carried = draft.script is not None and host.hostname is not None and not options["no_freeze"]
    draft = replace(draft, cluster=name, freeze=draft.freeze or carried)
    return host, expand_array(draft)


def _submit(host: Host, drafts: list[RunDraft]) -> list[SubmittedRun]:
    from onward.errors import OnwardError, SubmitRefused
    from onward.inputs.scripts.refused_lines import lines_about

    submitted: list[SubmittedRun] = []
    for draft in drafts:
        try:
            submitted.append(host.submit(draft, cwd=current_folder()))
        except OnwardError as error:
            if draft.script and isinstance(error, SubmitRefused):
                about = lines_about(error.message, name=draft.script.name, text=draft.script_text, family=draft.script.family)
                error.hint = "; ".join(part for part in (about, error.hint) if part)
            if submitted:
                error.hint = "; ".join(part for part in (error.hint, f"already queued: {', '.join(one.id for one in submitted)}") if part)
            raise
    return submitted


def _advise(draft: RunDraft) -> None:
    from onward.operations.submit.framework_hint import framework_hint

    for line in framework_hint(open_context(), draft, cwd=current_folder()):
        to_stderr(line)


def _draft(options: dict[str, Any], context: OperationsContext) -> RunDraft:
    from onward.errors import InvalidInput
    from onward.inputs.params.file import read_params
    from onward.inputs.params.flags import FLAGS, draft_from_flags, override
    from onward.inputs.scripts.batch_script import is_batch_script
    from onward.inputs.scripts.submit_line import applied, refuse_alone

    words = options["words"] or []
    command = words[:1] == ["--"]
    words = words[1:] if command else words
    flags = {flag: options[flag.replace("-", "_")] for flag in FLAGS}
    given = _foreign(options)
    if not words:
        refuse_alone(given)
        raise InvalidInput(
            "nothing to run",
            hint="onward submit params.yaml, onward submit train_model.sh, or onward submit --time 24:00:00 -- python train.py",
        )
    shared = {
        "name": options["name"],
        "experiment": options["experiment"],
        "cluster": options["cluster"],
        "flags": flags,
        "params": options["param"] or (),
        "variables": options["env"] or (),
        "modules": options["module"] or (),
        "setup": options["setup"] or (),
        "freeze": not options["no_freeze"],
        "exclude": options["code_exclude"] or (),
    }
    if not command and not words[0].endswith(_FILES) and is_batch_script(words[0], current_folder()):
        return _script_draft(words, context, shared, given)
    if not words[0].endswith(_FILES):
        draft = draft_from_flags(command=words, **shared)
    elif len(words) > 1:
        raise InvalidInput(f"unexpected {words[1]!r} after the params file {words[0]}", hint="the params file names the command")
    else:
        draft = override(read_params(Path(words[0])), **shared)
    if not given:
        return draft
    scheduler = context.settings.cluster(draft.cluster)[0].scheduler
    asked = {FLAGS[flag][2] for flag, value in flags.items() if value is not None} | ({"name"} if options["name"] else set())
    own = [one.of(scheduler) for one in given]
    draft, notes = applied(draft, own, scheduler=scheduler, cluster=draft.cluster, env=context.env, asked=asked)
    for note in notes:
        to_stderr(f"note: {note}")
    return draft


def _foreign(options: dict[str, Any]) -> list[GivenOption]:
    from onward.errors import InvalidInput
    from onward.inputs.scripts.requested_options import ScriptOption
    from onward.inputs.scripts.submit_line import GivenOption

    given = []
    for text in options.get("scheduler_option") or ():
        try:
            family, name, value = json_module.loads(text)
        except ValueError:
            raise InvalidInput(f"{_FOREIGN} is Onward's own", hint="write the option as sbatch or qsub has it") from None
        given.append(GivenOption(family=family, option=ScriptOption(name=name, value=value, line=0)))
    return given


def _script_draft(words: list[str], context: OperationsContext, shared: dict[str, Any], foreign: list[GivenOption]) -> RunDraft:
    """A batch script: its lines are its resources, and flags before it win over them, as on sbatch's own line."""
    from onward.errors import InvalidInput
    from onward.inputs.params.flags import FLAGS, override
    from onward.inputs.scripts.batch_script import read_script
    from onward.inputs.scripts.contradictions import replaced

    given = {"--param": shared["params"], "--code-exclude": shared["exclude"], "--launcher": shared["flags"].get("launcher")}
    for flag in (flag for flag, value in given.items() if value):
        raise InvalidInput(
            f"{flag} does not apply to a batch script", hint=f"pass arguments to the script instead: onward submit {words[0]} ARGUMENT…"
        )
    ours = [word for word in words[1:] if word.split("=", 1)[0] in _own_flags()]
    if "--dry-run" in ours:
        raise InvalidInput(
            f"--dry-run after {words[0]} is an argument of the script: the run would be queued",
            hint=f"put Onward's flags before it: onward submit --dry-run {words[0]}",
        )
    for word in ours:
        to_stderr(f"note: {word} after {words[0]} is passed to the script; put Onward's flags before it")
    cluster = shared["cluster"] or "auto"
    scheduler = context.settings.cluster(cluster)[0]
    read = read_script(Path(words[0]), words[1:], scheduler=scheduler.scheduler, cluster=cluster, env=context.env, given=foreign)
    for note in read.notes:
        to_stderr(f"note: {note}")
    if not shared["flags"]["max-legs"] and not shared["flags"]["total-time"]:
        to_stderr(f"{words[0]} is started again in each leg until it exits 0; --max-legs or --total-time limit that")
    keys = [FLAGS[flag][2] for flag, value in shared["flags"].items() if value is not None and FLAGS[flag][1] == "resources"]
    return override(replace(read.draft, resources=replaced(read.draft.resources, keys)), **shared)


def _own_flags() -> set[str]:
    hints = [parameter.annotation for parameter in inspect.signature(submit, eval_str=True).parameters.values()]
    options = [info for hint in hints for info in getattr(hint, "__metadata__", ()) if isinstance(info, typer.models.OptionInfo)]
    names = [str(name) for option in options for name in (option.default, *(option.param_decls or ()))]
    return {name for name in names if name.startswith("--")}
