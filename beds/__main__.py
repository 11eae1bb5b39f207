"""The command line: python3 -m beds up | down | status | env | fault."""

import argparse
import os
import shlex
import sys
from collections.abc import Callable

from beds.bed import Bed
from beds.errors import BedError
from beds.gridengine import GridEngineBed
from beds.slurm import SlurmBed

BEDS: dict[str, Callable[[], Bed]] = {"slurm": SlurmBed, "gridengine": GridEngineBed}

NODE_FAULTS = ("cut", "crash", "heal")
DAEMON_FAULTS = (
    "pause-controller",
    "continue-controller",
    "stop-controller",
    "start-controller",
    "stop-accounting",
    "start-accounting",
)


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
    for name in chosen.bed or BEDS:
        BEDS[name]().up()
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
    bed = SlurmBed()
    action, node, hard = chosen.action, chosen.node, chosen.hard
    if (action in NODE_FAULTS) != (node is not None):
        raise BedError(
            f"{action} {'needs a node' if node is None else 'takes no node'}",
            hint=f"a node goes with {', '.join(NODE_FAULTS)} and with nothing else",
        )
    match action:
        case "cut":
            bed.cut(node)
        case "crash":
            bed.crash(node)
        case "heal":
            bed.heal(node)
        case "pause-controller":
            bed.pause_controller()
        case "continue-controller":
            bed.continue_controller()
        case "stop-controller":
            bed.stop_controller(hard=hard)
        case "start-controller":
            bed.start_controller()
        case "stop-accounting":
            bed.stop_accounting(hard=hard)
        case "start-accounting":
            bed.start_accounting()
    print(f"done: {action}{f' {node}' if node else ''}")
    return 0


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

    one = verbs.add_parser("fault", help="break the slurm bed, or mend it")
    one.add_argument("action", choices=[*NODE_FAULTS, *DAEMON_FAULTS])
    one.add_argument("node", nargs="?", help="for cut, crash and heal")
    one.add_argument("--hard", action="store_true", help="stop-...: SIGKILL, not a clean stop")
    one.set_defaults(act=fault)
    return parser


if __name__ == "__main__":
    sys.exit(main())
