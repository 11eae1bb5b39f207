"""What a script that was written for W&B asks of its run beside logging: names, config, files. `import onward as wandb`."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from onward.sdk import contract
from onward.sdk.stderr import say, say_once

TYPE_CHECKING = False
if TYPE_CHECKING:
    from onward.sdk.wandb.artifact import Artifact
    from onward.sdk.wandb.config import Config, Summary

_DEEPEST = 16


class WandbRun:
    folder: Path
    leg: int
    by_hand: bool
    disabled: bool
    asked: dict[str, object]  # W&B's words, as init() was given them
    _last: dict[str, float]
    _step: int
    _config: Config | None = None
    _summary: Summary | None = None
    _saved: dict[Path, Path]  # files to be kept again at the end
    _unfit: set[str]  # metrics of which it was said that they are no numbers

    if TYPE_CHECKING:  # as the names above: the run has it

        def _tell(self, record: dict[str, object]) -> None: ...

    # ── names ─────────────────────────────────────────────────────────────────

    @property
    def id(self) -> str:
        value = self.asked.get("id") or (None if self.by_hand else os.environ.get(contract.RUN_ID))
        if value:
            return str(value)
        from onward.sdk.unmanaged.folder import unmanaged_run_id

        return unmanaged_run_id(self.folder.absolute())

    @property
    def name(self) -> str:
        """The name that the script gives; else the script's name in an unmanaged run, or the folder's name in a job."""
        value = self.asked.get("name")
        if value or not self.by_hand:
            return str(value or self.folder.name)
        from onward.sdk.unmanaged.folder import script_name

        return script_name()

    @name.setter
    def name(self, name: str) -> None:
        self.asked["name"] = name
        if self.by_hand:
            self._tell({"kind": "name", "name": str(name)})
        else:
            say_once("a run in a job keeps the name it was submitted with; the new one becomes its tag `name`")
            self._tell({"kind": "tags", "tags": {"name": str(name)}})

    @property
    def project(self) -> str:
        return str(self.asked.get("project") or "")

    @property
    def entity(self) -> str:
        return str(self.asked.get("entity") or "")

    @property
    def group(self) -> str:
        return str(self.asked.get("group") or "")

    @property
    def job_type(self) -> str:
        return str(self.asked.get("job_type") or "")

    @property
    def tags(self) -> tuple[str, ...]:
        given = self.asked.get("tags") or ()
        return (given,) if isinstance(given, str) else tuple(map(str, given))  # type: ignore[call-overload]

    @tags.setter
    def tags(self, tags: object) -> None:
        self.asked["tags"] = tags
        self._tell({"kind": "tags", "tags": dict.fromkeys(self.tags, "true")})

    @property
    def notes(self) -> str:
        return str(self.asked.get("notes") or "")

    @notes.setter
    def notes(self, notes: str) -> None:
        self.asked["notes"] = notes
        self._tell({"kind": "note", "text": str(notes)})

    @property
    def url(self) -> str | None:
        """Always None: a training does not know which server will show it."""
        return None

    def get_url(self) -> str | None:
        return self.url

    @property
    def dir(self) -> str:
        """A folder whose files are the run's artifacts."""
        folder = self.folder / "results" / "artifacts"
        if not self.disabled:
            folder.mkdir(parents=True, exist_ok=True)
        return str(folder)

    @property
    def step(self) -> int:
        """The step of the next log() without one."""
        return self._step + 1

    @property
    def resumed(self) -> bool:
        return self.leg > 1

    def describe(self) -> None:
        """Record the tags and notes given to init()."""
        labels = dict.fromkeys(self.tags, "true")
        words = {word: str(self.asked[word]) for word in ("group", "job_type") if self.asked.get(word)}
        if labels or words:
            self._tell({"kind": "tags", "tags": {**labels, **words}})
        if self.notes:
            self._tell({"kind": "note", "text": self.notes})

    # ── config, summary, alerts ───────────────────────────────────────────────

    @property
    def config(self) -> Config:
        """Params by item or attribute; what is set here is recorded."""
        if self._config is None:
            self.configure({})
        assert self._config is not None
        return self._config

    def configure(self, given: object, before: Mapping[str, object] | None = None) -> dict[str, object]:
        """Start the config with these; params are the same."""
        from onward.sdk.wandb.config import Config, as_mapping, flat_values

        values = {**(before or {}), **as_mapping(given or ())}
        self._config = Config(values, self._tell)
        return flat_values(values)

    @property
    def summary(self) -> Summary:
        """The last value of every metric, and what is set here."""
        if self._summary is None:
            from onward.sdk.wandb.config import Summary

            self._summary = Summary(self._last, self._tell)
        return self._summary

    def alert(self, title: str, text: str = "", level: object = "INFO", wait_duration: object = None) -> None:
        """A note, stored with the run and printed."""
        word = str(getattr(level, "value", level)).upper()
        say(f"{word}: {title}{': ' if text else ''}{text}")
        self._tell({"kind": "alert", "title": str(title), "text": str(text), "level": word})

    def define_metric(self, name: str, step_metric: object = None, **others: object) -> None:
        """Accepted and ignored: last, lowest and highest of every metric are always recorded."""
        if step_metric:
            say_once("define_metric(step_metric=…) is ignored: charts use steps and time")

    def watch(self, *models: object, **others: object) -> tuple[()]:
        say_once("watch() is ignored: gradients and weights are not logged")
        return ()

    def unwatch(self, *models: object) -> None:
        pass

    def mark_preempting(self) -> None:
        """Accepted and ignored: the supervisor knows."""

    def log_code(self, *words: object, **others: object) -> None:
        """`onward submit` freezes the code of a run."""

    # ── files ─────────────────────────────────────────────────────────────────

    @property
    def artifacts(self) -> Path:
        """Where complete files are put to become the run's artifacts: in a job, on the node."""
        value = None if self.by_hand else os.environ.get(contract.ARTIFACTS_DIR)
        return Path(value) if value else self.folder / "results" / "artifacts"

    def save(self, glob_str: object = None, base_path: object = None, policy: str = "live") -> list[str]:
        """Copy files to the run's artifacts: now, and once more at the end, in case they have changed."""
        if glob_str is None or self.disabled:  # `wandb.run.save()` was once how a new name was made known
            return []
        from onward.sdk.wandb.artifact import matching

        found = matching(str(glob_str), str(base_path) if base_path is not None else None)
        if not found:
            say_once(f"save({str(glob_str)!r}): no such file")
        self._saved.update(found)
        return [str(self._keep(path, name)) for path, name in found.items()]

    def log_artifact(
        self, artifact_or_path: object, name: str | None = None, type: str | None = None, aliases: object = None, **others: object
    ) -> Artifact:
        """Copy an artifact's files to the run's artifacts, each time it is logged as another version of its name."""
        from onward.sdk.wandb.artifact import Artifact

        artifact = artifact_or_path
        if not isinstance(artifact, Artifact):
            path = Path(str(artifact_or_path))
            artifact = Artifact(name or path.name, type or "unspecified")
            artifact.add_path(path)
        if not self.disabled:
            artifact.keep(self.artifacts, Path(self.dir), aliases, self._kept)
        return artifact

    def log_model(self, path: object, name: str | None = None, aliases: object = None) -> Artifact:
        return self.log_artifact(path, name=name, type="model", aliases=aliases)

    def use_artifact(self, artifact_or_name: object, type: str | None = None, **others: object) -> Artifact:
        """An artifact that this run logged; Onward keeps files with their runs, not in a registry."""
        from onward.sdk.wandb.artifact import Artifact, logged

        return artifact_or_name if isinstance(artifact_or_name, Artifact) else logged(str(artifact_or_name), Path(self.dir))

    def _keep(self, path: Path, name: Path) -> Path:
        from onward.sdk.wandb.artifact import keep_file

        target = self.artifacts / name
        if keep_file(path, target):
            self._kept(name.as_posix(), "", target)
        return target

    def _kept(self, name: str, kind: str, path: Path) -> None:
        try:
            size = path.stat().st_size
        except OSError:  # carried off already
            return
        self._tell({"kind": "artifact", "path": name, "type": kind, "bytes": size, "stored": True})

    def _keep_saved(self) -> None:
        for path, name in self._saved.items():
            if path.exists():
                self._keep(path, name)
        self._saved.clear()

    def _log_other(self, key: str, value: object, step: int) -> dict[str, float] | None:
        """A value that is not a number: stored as a file, or as some numbers. None: neither."""
        from onward.sdk.wandb.media import as_media

        numbers: dict[str, float] = {}
        media = as_media(value)
        if media is None:
            return None
        for n, one in enumerate(media):
            stem = f"{key}_{step}" + (f"_{n}" if len(media) > 1 else "")
            try:
                numbers.update(one.numbers(key))
                for path in one.keep(self.artifacts, stem):
                    self._kept(path.as_posix(), one.kind, self.artifacts / path)
            except Exception as error:  # whatever a library or a disk raises: the training goes on
                say_once(f"{key}: {type(one).__name__} is not stored: {error}")
        return numbers


def flattened(metrics: Mapping[str, object], above: str = "") -> dict[str, object]:
    """Nested values as `train.loss`; to a limited depth, as a mapping may contain itself."""
    found: dict[str, object] = {}
    for key, value in metrics.items():
        if isinstance(value, Mapping) and above.count(".") < _DEEPEST:
            found.update(flattened(value, f"{above}{key}."))
        else:
            found[f"{above}{key}"] = value
    return found
