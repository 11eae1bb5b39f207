"""The command line: python3 -m beds up | down | status | env | fault."""

import argparse
import os
import shlex
import sys
from collections.abc import Callable

from beds import packages
from beds.bed import Bed
from beds.errors import BedError
from beds.gridengine import GridEngineBed
from beds.gridengine_layout import HOST_NAMES
from beds.postgres import PostgresBed
from beds.rabbitmq import RabbitMQBed
from beds.slurm import SlurmBed
from beds.slurm_layout import NODE_NAMES
from beds.software import SoftwareBed
from beds.ssh import SshBed

BEDS: dict[str, Callable[[], Bed]] = {
    "slurm": SlurmBed,
    "gridengine": GridEngineBed,
    "software": SoftwareBed,
    "ssh": SshBed,
    "postgres": PostgresBed,
    "rabbitmq": RabbitMQBed,
}

NODE_FAULTS = ("cut", "crash", "unplug", "heal")
DAEMON_FAULTS = {  # in whose hands each lies
    "pause-controller": "slurm",
    "continue-controller": "slurm",
    "stop-controller": "slurm",
    "start-controller": "slurm",
    "stop-accounting": "slurm",
    "start-accounting": "slurm",
    "stop-qmaster": "gridengine",
    "start-qmaster": "gridengine",
    "stop-broker": "rabbitmq",
    "start-broker": "rabbitmq",
}


def main(arguments: list[str] | None = None) -> int:
    chosen = _parser().parse_args(arguments)
    try:
        code: int = chosen.act(chosen)
    except BedError as error:
        print(f"beds: {error}", file=sys.stderr)
        return 1
    except BrokenPipeError:  # whoever read our lines has read enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    return code


def up(chosen: argparse.Namespace) -> int:
    """One installation for all, then one bed after the other."""
    beds = [BEDS[name]() for name in chosen.bed or BEDS]
    if os.geteuid() == 0:
        packages.ensure([name for bed in beds for name in bed.packages], answers=[text for bed in beds for text in bed.answers])
    for bed in beds:
        bed.up()
    return 0


def down(chosen: argparse.Namespace) -> int:
    for name in chosen.bed or BEDS:
        BEDS[name]().down(wipe=chosen.wipe)
    return 0


def status(chosen: argparse.Namespace) -> int:
    """Exit code 0 if every bed is up, else 3."""
    beds = [make() for make in BEDS.values()]
    verdicts = [bed.is_up() for bed in beds]
    for bed, verdict in zip(beds, verdicts, strict=True):
        print(f"{bed.name}: {'up' if verdict else 'not (wholly) up'}")
        print("\n".join(bed.status()))
    return 0 if all(verdicts) else 3


def env(chosen: argparse.Namespace) -> int:
    for make in BEDS.values():
        for name, value in make().environment().items():
            print(f"export {name}={shlex.quote(value)}")
    return 0


def fault(chosen: argparse.Namespace) -> int:
    action, node, hard = chosen.action, chosen.node, chosen.hard
    if (action in NODE_FAULTS) != (node is not None):
        raise BedError(
            f"{action} {'needs a node' if node is None else 'takes no node'}",
            hint=f"a node goes with {', '.join(NODE_FAULTS)} and with nothing else",
        )
    if hard and not action.startswith("stop-"):
        raise BedError(f"{action} is not done hard or soft", hint="--hard goes with stop-...")
    bed = _bed_of(node) if node else BEDS[DAEMON_FAULTS[action]]()
    do = getattr(bed, action.replace("-", "_"), None)
    if do is None:
        raise BedError(f"the {bed.name} bed knows no {action}")
    do(*([node] if node else []), **({"hard": True} if hard else {}))
    print(f"done: {action}{f' {node}' if node else ''}")
    return 0


def _bed_of(node: str) -> SlurmBed | GridEngineBed:
    if node in NODE_NAMES:
        return SlurmBed()
    if node in HOST_NAMES:
        return GridEngineBed()
    raise BedError(f"no bed has a node {node!r}", hint=f"there are {', '.join([*NODE_NAMES, *HOST_NAMES])}")


def _bed_name(word: str) -> str:
    if word not in BEDS:
        raise argparse.ArgumentTypeError(f"there is no bed {word!r}; there are {', '.join(BEDS)}")
    return word


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python3 -m beds", description="Real schedulers for tests, on one bare Debian machine.")
    verbs = parser.add_subparsers(required=True, metavar="VERB")

    one = verbs.add_parser("up", help="install, start and repair; safe to repeat")
    one.add_argument("bed", nargs="*", type=_bed_name, help="which; all if none is named")
    one.set_defaults(act=up)

    one = verbs.add_parser("down", help="end what up started")
    one.add_argument("bed", nargs="*", type=_bed_name, help="which; all if none is named")
    one.add_argument("--wipe", action="store_true", help="delete the state folder too")
    one.set_defaults(act=down)

    one = verbs.add_parser("status", help="what runs; exit code 3 if something is missing")
    one.set_defaults(act=status)

    one = verbs.add_parser("env", help='lines for: eval "$(python3 -m beds env)"')
    one.set_defaults(act=env)

    one = verbs.add_parser("fault", help="break a bed, or mend it")
    one.add_argument("action", choices=[*NODE_FAULTS, *DAEMON_FAULTS])
    one.add_argument("node", nargs="?", help="for cut, crash, unplug and heal")
    one.add_argument("--hard", action="store_true", help="stop-...: SIGKILL, not a clean stop")
    one.set_defaults(act=fault)
    return parser


if __name__ == "__main__":
    sys.exit(main())
