"""A params.yaml of graph2tac's old pipeline, as a pipeline of ours where meanings match. What does not match is named, with its line."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from onward.errors import InvalidInput
from onward.inputs.command_line import usable_name
from onward.inputs.pipeline.converter import ConvertedPipeline
from onward.inputs.yaml_lines import KeyPath, YamlDocument, load_yaml, read_text, to_yaml

_CONFIGS = ("dataset", "prediction_task", "definition_task", "trainer", "run")  # of a tfgnn model, a file each
_GO_ON = 'cp -R "$1"/. "$2"/  # what an earlier leg saved: the training looks for it where it writes'
_SYSTEM = "git@github.com:coq-tactician/benchmark-system.git"
_DATA = "git@github.com:coq-tactician/benchmark-data.git"
_DATED = re.compile(r"^20[0-9-]+_(?:[A-Z]+_)?")
_HOURS = re.compile(r"_(\d+)h\b")


def convert_params(path: Path) -> ConvertedPipeline:
    document = load_yaml(read_text(path), str(path), as_text=(("train", "conda_env", "python"), ("benchmark", "conda_env", "python")))
    if document.problems:
        raise InvalidInput("\n".join(f"{path}:{line}: {sentence}" for line, sentence in document.problems))
    train, benchmark = document.data.get("train"), document.data.get("benchmark")
    if not ((isinstance(train, dict) and "model" in train) or (isinstance(benchmark, dict) and "benchmarks" in benchmark)):
        raise InvalidInput(
            f"{path} is not a file of graph2tac's old pipeline: found neither train.model nor benchmark.benchmarks",
            hint="a file of Onward needs no conversion: onward pipeline plan FILE",
        )
    return _Conversion(document, name=usable_name(_DATED.sub("", path.resolve().parent.name))).whole()


class _Conversion:
    """Takes out what it understands; whatever is left at the end is named."""

    def __init__(self, document: YamlDocument, *, name: str) -> None:
        self._document = document
        self._rest: dict[str, Any] = dict(document.data)
        self._made: dict[str, Any] = {"name": name, "cluster": "auto", "environments": {}}
        self._files: dict[str, str] = {}
        self._notes: list[tuple[int, str]] = []

    def whole(self) -> ConvertedPipeline:
        if isinstance(train := self._rest.pop("train", None), dict):
            self._train(dict(train))
        if isinstance(benchmark := self._rest.pop("benchmark", None), dict):
            self._benchmarks(dict(benchmark))
        self._leftovers((), self._rest)
        said = [f"{self._document.source}:{line}: {text}" for line, text in sorted(self._notes)]
        return ConvertedPipeline(
            text=to_yaml({key: value for key, value in self._made.items() if value}), files=self._files, notes=tuple(said)
        )

    def _note(self, keys: KeyPath, text: str) -> None:
        line, _ = self._document.find(keys)
        self._notes.append((line, f"{'.'.join(keys)}: {text}"))

    def _leftovers(self, keys: KeyPath, rest: dict[str, Any]) -> None:
        for key in rest:
            self._note((*keys, key), "unknown to the old pipeline; left out")

    # ── what both sections have ───────────────────────────────────────────────

    def _environment(self, keys: KeyPath, section: Any, name: str) -> dict[str, Any]:
        section = dict(section) if isinstance(section, dict) else {}
        made: dict[str, Any] = {
            "tool": "conda",
            "python": str(section.pop("python", "")),
            "setup": list(section.pop("setup_cmds", None) or []),
        }
        self._leftovers((*keys, "conda_env"), section)
        if made["setup"]:
            self._note((*keys, "conda_env", "setup_cmds"), "a failing line now stops everything; the old pipeline continued")
        self._made["environments"][name] = {key: value for key, value in made.items() if value}
        return self._made["environments"][name]  # type: ignore[no-any-return]

    def _resources(self, keys: KeyPath, section: Any) -> dict[str, Any]:
        section = dict(section) if isinstance(section, dict) else {}
        keys = (*keys, "job")
        if section.pop("job_runner", None) == "tmux":
            self._made["cluster"] = "local"
        elif section.get("queue"):
            self._note(
                (*keys, "queue"),
                f"an LSF queue, which Onward does not support; {section['queue']} is kept as the partition: replace it with your cluster's",
            )
        queue = section.pop("queue", None)
        made = {"partition": queue, "cpus-per-task": section.pop("cpus", None), "gpus": section.pop("gpus", None)}
        memory = section.pop("mem_gb", None)
        made["mem"] = f"{memory}G" if memory else None
        if hours := _HOURS.search(str(queue)):
            made["time"] = f"{int(hours[1]):02d}:00:00"
            self._note((*keys, "queue"), f"its name says {hours[1]} hours, which is now the time limit of one leg")
        if section.pop("require", None):
            self._note((*keys, "require"), "an LSF option; write it as constraint or extra in resources")
        self._leftovers(keys, section)
        return {key: value for key, value in made.items() if value}

    def _script(self, name: str, lines: list[str]) -> str:
        self._files[name] = "\n".join(["set -e", *lines, ""])
        return name

    # ── train ─────────────────────────────────────────────────────────────────

    def _train(self, train: dict[str, Any]) -> None:
        self._environment(("train",), train.pop("conda_env", None), "train")
        data = train.pop("data", None) or {}
        folder = "/".join(str(data[key]).rstrip("/") for key in ("datadir", "dataset") if data.get(key))
        self._note(("train", "data"), "read in place; the old pipeline copied it to the node each round")
        restarts = train.pop("max_restarts", None)
        made: dict[str, Any] = {
            "command": self._training(train.pop("model", None), train.pop("model_params", None) or {}),
            "params": {"data": folder},
            "environment": "train",
            "resources": self._resources(("train",), train.pop("job", None)),
        }
        if isinstance(restarts, int):
            made["limits"] = {"max-legs": restarts + 1}
            self._note(
                ("train", "max_restarts"),
                f"at most {restarts + 1} legs; it is finished when it exits 0, not when a round changes nothing",
            )
        self._upload(train.pop("upload_model", None))
        self._leftovers(("train",), train)
        self._made["train"] = made

    def _training(self, model: Any, params: dict[str, Any]) -> str:
        match model:
            case "tfgnn":
                words = 'g2t-train-tfgnn --data-dir "$3"'
                for key in _CONFIGS:
                    self._files[f"configs/{key}.yml"] = to_yaml(params[key]) if params.get(key) else "null\n"
                    words += f" --{key.replace('_', '-')}-config configs/{key}.yml"
                for key in (key for key in params if key not in _CONFIGS):
                    self._note(("train", "model_params", key), "unknown to the old pipeline; left out")
                lines = [_GO_ON, f'exec {words} --log "$2" --gpu all']
            case "tf2":
                self._files["configs/tf2_params.yml"] = to_yaml(params)
                newest = 'epoch=$(ls "$2"/weights 2>/dev/null | sed -n "s/^checkpoint__epoch//p" | sort -n | tail -n 1)'
                words = 'g2t-train "$3" configs/tf2_params.yml --work-dir "$ONWARD_RUN_DIR/workdir" --output-dir "$2" --logging-level INFO'
                lines = [_GO_ON, newest, f'exec {words} ${{epoch:+--from-checkpoint "$epoch"}}']
            case "hmodel":
                words = f'g2t-train-hmodel "$3" --max_subgraph_size {params.get("max_subgraph_size", "")}'
                lines = ['cd "$2"', f"exec {words}{' --with_context' if params.get('with_context') else ''}"]
            case _:
                raise InvalidInput(f"{self._document.source}: train.model: found {model!r}, expected tfgnn, tf2 or hmodel")
        return f"bash {self._script('train.sh', lines)} {{checkpoints.read}} {{checkpoints.write}} {{params.data}}"

    def _upload(self, section: Any) -> None:
        if not isinstance(section, dict):
            return
        keys = ("train", "upload_model")
        rest = dict(section)
        if to := rest.pop("fileserver_ssh", None):
            self._made["upload"] = {"to": str(to), "what": ["checkpoints"]}
            self._note((*keys, "fileserver_ssh"), "the last checkpoint is uploaded when it is finished, under the run's path")
        for key in ("fileserver_url", "spec_git_branch", "spec"):
            if rest.pop(key, None):
                self._note((*keys, key), "not converted: Onward commits no model specs to git; do it in a stage that needs train")
        self._leftovers(keys, rest)

    # ── benchmark ─────────────────────────────────────────────────────────────

    def _benchmarks(self, benchmark: dict[str, Any]) -> None:
        """The old benchmarks ran on a commit of a git repository, not on a checkpoint: so they are stages."""
        environment = self._environment(("benchmark",), benchmark.pop("conda_env", None), "benchmark")
        switch = 'eval "$(opam env --switch="$CONDA_PREFIX/opam" --set-switch)"'
        environment["setup"] = [
            *environment.get("setup", []),
            'mkdir -p "$CONDA_PREFIX/opam" && opam switch create "$CONDA_PREFIX/opam" --empty',
            f'git clone {_SYSTEM} "$CONDA_PREFIX/benchmark-system"',
            f'{switch} && opam update && opam install --yes "$CONDA_PREFIX/benchmark-system"',
        ]
        environment["activate"] = [switch, 'export PATH="$CONDA_PREFIX/bin:$PATH" CPATH="$CONDA_PREFIX/include:${CPATH:-}"']
        stages = dict(self._stages(benchmark.pop("benchmarks", None) or []))
        self._leftovers(("benchmark",), benchmark)
        if stages:
            self._note(
                ("benchmark", "benchmarks"),
                "now run in parallel, each as a stage; to benchmark checkpoints, write them under `benchmark:`",
            )
            self._made["stages"] = stages
        else:
            del self._made["environments"]["benchmark"]

    def _stages(self, benchmarks: list[Any]) -> Iterator[tuple[str, dict[str, Any]]]:
        for index, section in enumerate(benchmarks):
            keys = ("benchmark", "benchmarks", str(index))
            rest = dict(section) if isinstance(section, dict) else {}
            repo, commit = rest.pop("spec_repo", None), rest.pop("spec_commit", None)
            settings, job = dict(rest.pop("benchmark_settings", None) or {}), rest.pop("job", None)
            if not (repo and commit):
                self._note(keys, "not converted: Onward creates and commits no specs; set spec_repo and spec_commit")
                continue
            self._leftovers(keys, rest)
            system = '"$CONDA_PREFIX"/benchmark-system/local'
            flags = [f"-{name} {shlex.quote(str(value))}" for name, value in settings.items() if name != "coq-project"]
            flags += [
                '-benchmark-data "$data"',
                f"-benchmark-repo {shlex.quote(str(repo))}",
                f"-benchmark-commit {shlex.quote(str(commit))}",
            ]
            flags += [f"-compile-allocator {system}/compile_allocator", f"-bench-allocator {system}/bench_allocator"]
            project = shlex.quote(str(settings.get("coq-project", "")))
            lines = ['data="$ONWARD_RUN_DIR/workdir/benchmark-data"', 'rm -rf "$data"', f'git clone {_DATA} "$data"']
            script = self._script(f"benchmark-{index}.sh", [*lines, " ".join(["exec tactician-benchmark", *flags, project])])
            made = {"command": f"bash {script}", "environment": "benchmark", "resources": self._resources(keys, job)}
            yield f"benchmark-{index}", {**made, **({"needs": ["train"]} if "train" in self._made else {})}
