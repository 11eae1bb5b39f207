"""Clean says what it would free and removes only that: nothing of what is open, of others, or that cannot be made again."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from onward.errors import Conflict
from onward.model.pipelines.environment_build import Build, build_to_json
from onward.model.pipelines.plan import PipelinePlan, Stage, StageKind, plan_to_json
from onward.model.run import LegEnd
from onward.model.spec import Environment, PipelineMembership, RunDraft
from onward.operations.admin.cleanup import FolderScan, RemovableKind, freed_bytes, remove_scanned, scan_roots
from onward.operations.pipelines.control import retry_failed
from onward.pipelines.build import Environments
from onward.rundir.layout import RunDir
from onward.rundir.pipeline.layout import PipelineDir
from onward.rundir.root.layout import RootDir
from onward.rundir.root.shared_files import write_shared
from tests.sandbox import NOON, PlayedRun, Sandbox

BUILD = Build(name="main", tool="none", setup=("true",))
DAY = 86400.0


@pytest.fixture
def sandbox(tmp_path: Path) -> Sandbox:
    return Sandbox(tmp_path)


def over(sandbox: Sandbox, name: str = "digits", end: LegEnd = LegEnd.DONE, **others: object) -> PlayedRun:
    run = sandbox.play(name, **others).begin(1).end(1, end)
    filled(run.dir.workdir)
    return run


def filled(folder: Path) -> None:
    (folder / "cache").mkdir(parents=True, exist_ok=True)
    (folder / "cache" / "big.bin").write_bytes(b"x" * 50_000)
    (folder / "note").write_text("scratch")


def built(sandbox: Sandbox, build: Build = BUILD) -> Path:
    """An environment that is whole; its link."""
    environments = Environments(sandbox.root)
    folder = environments.attempt(build.key, "k00build", 1)
    (folder / "prefix").mkdir()
    (folder / "prefix" / "lib.so").write_bytes(b"y" * 80_000)
    (folder / "build.json").write_text(json.dumps(build_to_json(build)))
    environments.show(build.key, folder)
    os.utime(folder, (NOON, NOON))
    return environments.link(build.key)


def pipeline(sandbox: Sandbox, *, ended: bool) -> PipelineDir:
    dir = PipelineDir(sandbox.root / "2026-11-15_Z_piped")
    dir.make()
    draft = RunDraft(name="x", experiment="x", cluster="local", command=())
    stages = (Stage(name="env-main", kind=StageKind.ENVIRONMENT, draft=draft, environment="main", done_by="earlier"),)
    dir.plan.write_text(
        json.dumps(plan_to_json(PipelinePlan(name="piped", experiment="x", cluster="local", builds=(BUILD,), stages=stages)))
    )
    filled(dir.workdir)
    if ended:
        dir.over.write_text(json.dumps({"state": "failed", "cause": "", "at": NOON}))
    return dir


def names(found: FolderScan) -> list[tuple[str, str]]:
    return [(item.kind, item.name) for item in found.items]


def why(found: FolderScan, path: Path) -> str:
    return next(kept.why for kept in found.kept if kept.path == path)


# ── what goes ─────────────────────────────────────────────────────────────────


def test_looking_changes_nothing_and_says_how_much_room_there_is(sandbox: Sandbox) -> None:
    run, link = over(sandbox), built(sandbox)
    found = scan_roots(sandbox.context)
    assert names(found) == [("workdir", run.dir.path.name), ("environment", "main")]
    assert 50_000 < found.items[0].bytes < 80_000 and 80_000 < found.items[1].bytes < 120_000
    assert found.bytes == found.items[0].bytes + found.items[1].bytes and not found.kept
    assert (run.dir.workdir / "note").exists() and link.exists()


def test_removing_leaves_all_but_the_insides_of_work_folders(sandbox: Sandbox) -> None:
    run = over(sandbox)
    run.save(1, 7)
    (run.dir.logs / "leg-0001.out").write_text("step 1")
    before = set(run.files())
    gone, problems = remove_scanned(sandbox.context, scan_roots(sandbox.context))
    assert [item.path for item in gone] == [run.dir.workdir] and not problems
    assert before - set(run.files()) == {"workdir/cache", "workdir/cache/big.bin", "workdir/note"}
    assert run.dir.workdir.is_dir() and not scan_roots(sandbox.context).items


def test_work_folders_of_pipelines_that_are_over_go_and_their_plan_stays(sandbox: Sandbox) -> None:
    dir = pipeline(sandbox, ended=True)
    gone, _ = remove_scanned(sandbox.context, scan_roots(sandbox.context))
    assert [item.path for item in gone] == [dir.workdir] and dir.is_pipeline()


def test_an_environment_that_nothing_open_uses_goes_with_its_link(sandbox: Sandbox) -> None:
    link = built(sandbox)
    pipeline(sandbox, ended=True)
    folder = link.resolve()
    remove_scanned(sandbox.context, scan_roots(sandbox.context))
    assert not link.is_symlink() and not folder.exists()


def test_what_a_build_left_that_was_ended_goes_after_a_day(sandbox: Sandbox) -> None:
    folder = Environments(sandbox.root).attempt(BUILD.key, "k00build", 1)
    (folder / "build.log").write_text("collecting")
    for path in (folder / "build.log", folder):
        os.utime(path, (NOON - DAY - 60, NOON - DAY - 60))
    assert [(item.kind, item.path) for item in scan_roots(sandbox.context).items] == [(RemovableKind.HALF_MADE, folder)]
    os.utime(folder / "build.log", (NOON - 60, NOON - 60))
    found = scan_roots(sandbox.context)
    assert not found.items and why(found, folder) == "it was changed within a day"


def test_an_archive_that_no_run_has_any_more_goes_after_a_day_and_one_in_use_stays(sandbox: Sandbox) -> None:
    shared = RootDir(sandbox.root).supervisors
    for run, content in (("old", b"1" * 50_000), ("new", b"2")):
        (sandbox.root / run).mkdir(parents=True)
        write_shared(shared, content, sandbox.root / run / "supervisor.pyz")
    for archive in shared.iterdir():
        os.utime(archive, (NOON, NOON))
    sandbox.clock.sleep(2 * DAY)
    assert scan_roots(sandbox.context).items == []
    shutil.rmtree(sandbox.root / "old")
    [item], problems = remove_scanned(sandbox.context, found := scan_roots(sandbox.context))
    assert (item.kind, problems) == (RemovableKind.SUPERVISOR, []) and found.bytes > 40_000
    assert len(list(shared.iterdir())) == 1 and (sandbox.root / "new" / "supervisor.pyz").exists()


def test_only_what_is_old_enough_goes_and_an_environment_is_as_old_as_its_last_use(sandbox: Sandbox) -> None:
    link = built(sandbox)
    over(sandbox)
    sandbox.clock.sleep(3 * DAY)
    over(sandbox, "later", environment=Environment(venv=str(link / "prefix")))
    assert names(scan_roots(sandbox.context, older=2 * DAY)) == [("workdir", "2026-11-15_B_digits")]
    sandbox.clock.sleep(2 * DAY)
    assert len(scan_roots(sandbox.context, older=2 * DAY).items) == 3


def test_a_file_that_has_another_name_elsewhere_frees_nothing(sandbox: Sandbox, tmp_path: Path) -> None:
    run = over(sandbox)
    all_of_it = freed_bytes(run.dir.workdir)
    os.link(run.dir.workdir / "cache" / "big.bin", tmp_path / "kept.bin")
    assert all_of_it - freed_bytes(run.dir.workdir) > 50_000
    os.link(run.dir.workdir / "cache" / "big.bin", run.dir.workdir / "twice.bin")
    (tmp_path / "kept.bin").unlink()
    assert freed_bytes(run.dir.workdir) == all_of_it, "both names go, so it is freed, once"


# ── what stays ────────────────────────────────────────────────────────────────


def test_nothing_of_an_open_run_is_offered(sandbox: Sandbox) -> None:
    run = sandbox.play().begin(1)
    filled(run.dir.workdir)
    assert not scan_roots(sandbox.context).items


@pytest.mark.parametrize("marker", ["{", "[]", '{"state": "finished"}'])
def test_a_run_of_which_it_cannot_be_told_whether_it_is_over_counts_as_open(sandbox: Sandbox, marker: str) -> None:
    over(sandbox).dir.done.write_text(marker)
    assert not scan_roots(sandbox.context).items


def test_nothing_of_an_open_pipeline_and_its_runs_is_offered_whether_they_are_over_or_not(sandbox: Sandbox) -> None:
    dir, link = pipeline(sandbox, ended=False), built(sandbox)
    over(sandbox, member=PipelineMembership(pipeline=str(dir.path), stage="prepare"))
    found = scan_roots(sandbox.context)
    assert not found.items and why(found, link) == "2026-11-15_Z_piped uses it"


def test_an_environment_that_an_open_run_uses_stays(sandbox: Sandbox) -> None:
    link = built(sandbox)
    run = sandbox.play(environment=Environment(setup=(f". {link}/prefix/activate",)))
    found = scan_roots(sandbox.context)
    assert not found.items and why(found, link) == f"{run.dir.path.name} uses it"


def test_while_a_pipeline_is_made_or_something_open_cannot_be_read_no_environment_goes(sandbox: Sandbox) -> None:
    link = built(sandbox)
    half = RunDir(sandbox.root / "2026-11-15_Y_half")
    half.make()
    assert why(scan_roots(sandbox.context), link) == "2026-11-15_Y_half is being created and may use it"
    os.utime(half.path, (NOON - DAY, NOON - DAY))
    assert names(scan_roots(sandbox.context)) == [("environment", "main")]
    dir = pipeline(sandbox, ended=False)
    dir.plan.write_text("{")
    assert why(scan_roots(sandbox.context), link) == "2026-11-15_Z_piped cannot be read and may use it"
    dir.over.write_text(json.dumps({"at": NOON}))
    sandbox.play("lost").dir.spec.write_text("{")
    assert "_lost cannot be read and may use it" in why(scan_roots(sandbox.context), link)


def test_a_build_that_an_open_run_is_at_stays_however_old_it_is(sandbox: Sandbox) -> None:
    run = sandbox.play("build").begin(1)
    folder = Environments(sandbox.root).attempt(BUILD.key, run.spec.id, 1)
    os.utime(folder, (NOON - 9 * DAY, NOON - 9 * DAY))
    found = scan_roots(sandbox.context)
    assert not found.items and why(found, folder) == f"run {run.spec.id} is building it"


def test_what_is_another_persons_stays(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    run, link = over(sandbox), built(sandbox)
    monkeypatch.setattr("onward.operations.admin.cleanup.os.getuid", lambda: 4242)
    found = scan_roots(sandbox.context)
    assert not found.items and why(found, run.dir.workdir).startswith("it belongs to ")
    remove_scanned(sandbox.context, found)
    assert link.exists(), "what another has built is not even looked at"


def test_a_work_folder_that_is_a_link_is_not_followed(sandbox: Sandbox, tmp_path: Path) -> None:
    run = over(sandbox)
    run.dir.workdir.rename(tmp_path / "elsewhere")
    run.dir.workdir.symlink_to(tmp_path / "elsewhere")
    found = scan_roots(sandbox.context)
    assert not found.items and why(found, run.dir.workdir) == "it is a link, and its target does not belong to Onward"


def test_a_link_inside_a_work_folder_goes_and_what_it_leads_to_stays(sandbox: Sandbox, tmp_path: Path) -> None:
    run = over(sandbox)
    filled(tmp_path / "data")
    (run.dir.workdir / "data").symlink_to(tmp_path / "data")
    (run.dir.workdir / "cache" / "data").symlink_to(tmp_path / "data")
    remove_scanned(sandbox.context, scan_roots(sandbox.context))
    assert not list(run.dir.workdir.iterdir()) and (tmp_path / "data" / "cache" / "big.bin").exists()


def test_an_environment_that_leads_elsewhere_stays(sandbox: Sandbox, tmp_path: Path) -> None:
    built(sandbox)
    filled(tmp_path / "own")
    link = Environments(sandbox.root).link("0" * 20)
    link.symlink_to(tmp_path / "own")
    found = scan_roots(sandbox.context)
    assert names(found) == [("environment", "main")] and why(found, link) == "it leads outside the environments folder"


def test_what_was_sent_to_a_run_that_could_be_resumed_stays(sandbox: Sandbox) -> None:
    failed = over(sandbox, end=LegEnd.CANCELLED)
    failed.dir.inputs.mkdir()
    found = scan_roots(sandbox.context)
    assert not found.items and "resumed" in why(found, failed.dir.workdir)
    body = json.loads(failed.dir.done.read_text())
    failed.dir.done.write_text(json.dumps({**body, "state": "finished"}))
    assert len(scan_roots(sandbox.context).items) == 1


# ── meanwhile ─────────────────────────────────────────────────────────────────


def test_a_run_that_was_resumed_since_it_was_looked_at_keeps_its_work_folder(sandbox: Sandbox) -> None:
    run = over(sandbox)
    found = scan_roots(sandbox.context)
    run.dir.done.unlink()
    gone, problems = remove_scanned(sandbox.context, found)
    assert not gone and problems == [f"{run.dir.workdir}: it is in use now, so it stays"]
    assert (run.dir.workdir / "note").exists()


def test_what_cannot_be_removed_is_told_and_the_rest_goes(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = over(sandbox), over(sandbox, "second")
    real: Callable[..., None] = shutil.rmtree

    def refuses(path: Path) -> None:
        if first.dir.path in path.parents:
            raise PermissionError(13, "Permission denied")
        real(path)

    monkeypatch.setattr("onward.operations.admin.cleanup.shutil.rmtree", refuses)
    gone, problems = remove_scanned(sandbox.context, scan_roots(sandbox.context))
    assert [item.name for item in gone] == [second.dir.path.name]
    assert problems == [f"{first.dir.workdir}: Permission denied"]


def test_a_pipeline_whose_environment_was_removed_says_how_it_is_built_again(sandbox: Sandbox) -> None:
    dir = pipeline(sandbox, ended=True)
    with pytest.raises(Conflict, match="the environment main of 2026-11-15_Z_piped has been removed") as caught:
        retry_failed(sandbox.context, dir)
    assert "--from env-main" in caught.value.hint


def test_a_root_that_is_not_there_yet_has_nothing_to_free(tmp_path: Path) -> None:
    assert scan_roots(Sandbox(tmp_path).context) == FolderScan()
