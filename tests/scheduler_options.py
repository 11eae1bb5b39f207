"""The page of sbatch's and qsub's options, from the tables that Onward itself reads: `python -m tests.scheduler_options` writes it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from onward.inputs.scripts import gridengine_options, slurm_options
from onward.inputs.scripts.option_table import Fate, OptionRule

PAGE = Path(__file__).parents[1] / "docs" / "reference" / "scheduler-options.md"
_HEAD = """# Options of sbatch and qsub

What becomes of each: in a batch script, in `resources.extra` and on the command line of `onward submit` and `onward run`.

On the command line Onward's own flags count first, and they have Slurm's spelling: `-N` is `--nodes`, `-t` is `--time`, `-p` is
`--partition`, `-q` is `--qos`, `-A` is `--account`, `-P` is `--param`, `-h` is `--help`. So for a queue of Grid Engine write
`--partition`, for its project `--account`, for a job's name `--name`. A letter that sbatch and qsub both have, such as `-V`, means what it
means to the cluster's scheduler; on other clusters, sbatch's. An option that only the other scheduler has is refused, and on the local
queue it is left out with a note. Options before a batch script win over its lines.

- **handed on**: each leg's job is submitted with it, as it is.
- **left out**: Onward does that already, or it changes nothing. `onward submit` says so where it matters.
- **refused**: nothing is queued; the reason says what to do instead.
"""
_FATES = {
    Fate.TAKEN: "{words}",
    Fate.HANDED_ON: "handed on",
    Fate.LEFT_OUT: "left out: {words}",
    Fate.NOTED: "left out: {words}",
    Fate.REFUSED: "**refused**: {words}",
}


def page() -> str:
    tables = (("sbatch", slurm_options.OPTIONS), ("qsub", gridengine_options.OPTIONS))
    return _HEAD + "".join(f"\n## {program}\n\n{''.join(_table(rules))}" for program, rules in tables)


def _table(rules: Mapping[str, OptionRule]) -> Iterator[str]:
    yield "| option | what becomes of it |\n|---|---|\n"
    for rule in rules.values():
        names = f"`{rule.name}` `{rule.short}`" if rule.short else f"`{rule.name}`"
        known = f"handed on; {rule.words}" if rule.fate is Fate.HANDED_ON and rule.words else _FATES[rule.fate].format(words=rule.words)
        yield f"| {names} | {known.replace('not passed on; ', '')} |\n"


if __name__ == "__main__":
    PAGE.write_text(page())
