"""`onward submit` queues a run and leaves; `onward run` queues it and follows. Two doors: a params file, or a flag line."""

from __future__ import annotations

import inspect
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from onward.cli.desk import JsonOption, open_desk
from onward.cli.render import out, out_json, say

if TYPE_CHECKING:
    from onward.model.spec import RunDraft
    from onward.rundir.layout import RunDir

Text = str | None


def _option(*names: str, help: str) -> Any:
    return typer.Option(*names, help=help, show_default=False)


Words = Annotated[list[str] | None, typer.Argument(metavar="PARAMS.YAML | -- COMMAND...", help="A params file, or the command itself.")]
Name = Annotated[Text, _option("--name", "-J", help="Name of the run. Default: from the script's.")]
Experiment = Annotated[Text, _option("--experiment", help="The question it belongs to. Default: its name.")]
ClusterName = Annotated[Text, _option("--cluster", help="auto, local, slurm, or a profile of your settings.")]
Time = Annotated[Text, _option("--time", "-t", help="Limit of one leg: minutes, HH:MM:SS or D-HH:MM:SS.")]
Mem = Annotated[Text, _option("--mem", help="Memory a node, as in 32G.")]
Cpus = Annotated[Text, _option("--cpus-per-task", "-c", help="CPUs a task.")]
Nodes = Annotated[Text, _option("--nodes", "-N", help="Nodes.")]
Ntasks = Annotated[Text, _option("--ntasks", "-n", help="Tasks.")]
NtasksPerNode = Annotated[Text, _option("--ntasks-per-node", help="Tasks a node.")]
Gpus = Annotated[Text, _option("--gpus", "-G", help="GPUs, as in 2 or a100:2.")]
Gres = Annotated[Text, _option("--gres", help="Generic resources, as in gpu:1.")]
Partition = Annotated[Text, _option("--partition", "-p", help="Partition or queue.")]
Account = Annotated[Text, _option("--account", "-A", help="Account to charge.")]
Qos = Annotated[Text, _option("--qos", "-q", help="Quality of service.")]
Constraint = Annotated[Text, _option("--constraint", "-C", help="Node features.")]
Reservation = Annotated[Text, _option("--reservation", help="Reservation.")]
Nodelist = Annotated[Text, _option("--nodelist", "-w", help="Nodes to use.")]
Exclude = Annotated[Text, _option("--exclude", "-x", help="Nodes not to use.")]
MailUser = Annotated[Text, _option("--mail-user", help="Address for the scheduler's mails.")]
MailType = Annotated[Text, _option("--mail-type", help="When the scheduler mails.")]
TotalTime = Annotated[Text, _option("--total-time", help="End the run after this much time in legs.")]
MaxLegs = Annotated[Text, _option("--max-legs", help="End the run after this many legs.")]
MaxRestarts = Annotated[Text, _option("--max-restarts", help="Bad ends in a row without a new checkpoint that are borne. Default: 3.")]
MemMax = Annotated[Text, _option("--mem-max", help="After out of memory, ask for more, up to this.")]
StallTime = Annotated[Text, _option("--stall-time", help="Restart a training that shows no progress for so long.")]
Every = Annotated[Text, _option("--checkpoint-every", help="How often run.should_checkpoint() says yes: auto, or a time.")]
Keep = Annotated[Text, _option("--keep", help="Checkpoints to keep (never fewer than two). Default: 3.")]
KeepEvery = Annotated[Text, _option("--keep-every", help="Keep the checkpoint of every so many steps for good.")]
BestMetric = Annotated[Text, _option("--best-metric", help="Keep the checkpoint that is best by this metric.")]
BestMode = Annotated[Text, _option("--best-mode", help="max or min. Default: max.")]
StopSignal = Annotated[Text, _option("--stop-signal", help="Signal that asks the training to stop. Default: the stop file alone.")]
Params = Annotated[
    list[str] | None, typer.Option("--param", "-P", metavar="NAME=VALUE", help="A value for {params.NAME}.", show_default=False)
]
Env = Annotated[list[str] | None, typer.Option("--env", metavar="NAME=VALUE", help="A variable for the training.", show_default=False)]
NoFreeze = Annotated[bool, typer.Option("--no-freeze", help="Run the code where it stands, do not copy it.")]
CodeExclude = Annotated[
    list[str] | None, typer.Option("--code-exclude", metavar="GLOB", help="Link this instead of copying it.", show_default=False)
]
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
    checkpoint_every: Every = None,
    keep: Keep = None,
    keep_every: KeepEvery = None,
    best_metric: BestMetric = None,
    best_mode: BestMode = None,
    stop_signal: StopSignal = None,
    param: Params = None,
    env: Env = None,
    no_freeze: NoFreeze = False,
    code_exclude: CodeExclude = None,
    dry_run: DryRun = False,
    json: JsonOption = False,
) -> None:
    """Queue a run and leave: onward submit params.yaml, or onward submit --time 24:00:00 --gpus 1 -- python train.py."""
    dir = _submit(dict(locals()))
    if dir:
        _announce(dir, json=json)


def run(**options: Any) -> None:
    """Queue a run and follow it to its end. Ctrl-C stops following, never the run."""
    dir = _submit(options)
    if dir:
        from onward.cli.follow import follow

        follow(open_desk(), dir)


def _give_flags(function: Any, *, of: Any, without: str) -> None:
    """`run` takes what `submit` takes: one list of flags for both."""
    signature = inspect.signature(of, eval_str=True)
    function.__signature__ = signature.replace(parameters=[p for p in signature.parameters.values() if p.name != without])
    function.__annotations__ = {name: hint for name, hint in of.__annotations__.items() if name != without}


_give_flags(run, of=submit, without="json")


def _submit(options: dict[str, Any]) -> RunDir | None:
    from onward.operations.submit import preview
    from onward.operations.submit import submit as submit_draft

    draft = _draft(options)
    desk = open_desk()
    if options["dry_run"]:
        seen = preview(desk, draft, cwd=Path.cwd())
        say(f"nothing is queued; the run's folder would be {seen.folder}, and the command")
        say(f"  {shlex.join(seen.command)}")
        out(seen.script.rstrip())
        return None
    return submit_draft(desk, draft, cwd=Path.cwd())


def _draft(options: dict[str, Any]) -> RunDraft:
    from onward.errors import InvalidInput
    from onward.pipelines.flags import FLAGS, draft_from_flags, override
    from onward.pipelines.params import read_params

    words = options["words"] or []
    flags = {flag: options[flag.replace("-", "_")] for flag in FLAGS}
    if not words:
        raise InvalidInput("there is nothing to run", hint="onward submit params.yaml, or onward submit --time 24:00:00 -- python train.py")
    shared = {
        "name": options["name"],
        "experiment": options["experiment"],
        "cluster": options["cluster"],
        "flags": flags,
        "params": options["param"] or (),
        "variables": options["env"] or (),
        "freeze": not options["no_freeze"],
        "exclude": options["code_exclude"] or (),
    }
    if not words[0].endswith((".yaml", ".yml")):
        return draft_from_flags(command=words, **shared)
    if len(words) > 1:
        raise InvalidInput(f"after the params file {words[0]} stands {words[1]!r}", hint="a params file holds its own command")
    return override(read_params(Path(words[0])), **shared)


def _announce(dir: RunDir, *, json: bool) -> None:
    from onward.rundir.journal import read_run

    run = read_run(dir)
    job = run.legs[1].job
    if json:
        out_json(
            {"schema": 1, "id": run.spec.id, "name": run.spec.name, "folder": str(dir.path), "cluster": run.spec.cluster.name, "job": job}
        )
        return
    out(run.spec.id)
    say(f"{run.spec.name}: leg 1 is job {job} on {run.spec.cluster.name}; folder {dir.path}")
    say(f"  onward logs -f {run.spec.id}    onward show {run.spec.id}")
