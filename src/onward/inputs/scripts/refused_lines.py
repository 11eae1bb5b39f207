"""Which lines of a batch script the scheduler's words are about: a refusal names an option or its value, never where it stands."""

from __future__ import annotations

import re

from onward.inputs.scripts import qsub_lines, sbatch_lines
from onward.inputs.scripts.requested_options import ScriptOption

_READERS = {"slurm": sbatch_lines, "gridengine": qsub_lines}
_MOST = 3


def lines_about(words: str, *, name: str, text: str, family: str) -> str:
    """`train.sh:3 says --licenses=x`, of those options whose name or value is in the words; of none, all lines that may be meant."""
    reader = _READERS[family]
    options = [option for option in reader.options_in(text) if isinstance(option, ScriptOption)]
    if not options:
        return ""
    heard = set(re.findall(r"[a-z0-9_.-]+", words.lower()))
    named = [option for option in options if heard & _words_of(option)]
    if named:
        return "; ".join(f"{name}:{option.line} says {option}" for option in named[:_MOST])
    lines = sorted({option.line for option in options})
    return f"its options are in {name}:{lines[0]}" + (f"–{lines[-1]}" if len(lines) > 1 else "")


def _words_of(option: ScriptOption) -> set[str]:
    found = re.findall(r"[a-z0-9_.-]+", (option.value or "").lower())
    name = option.name.split(" ", 1)[0].lstrip("-").lower()
    parts = [*found, *(part for part in re.split(r"[=,:]", (option.value or "").lower()) if part), name]
    return {part for part in parts if len(part) > 2 and not part.isdigit()}
