from __future__ import annotations

import io
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from onward.rundir.freeze import build_archive, pack


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("params") / "supervisor.pyz"
    build_archive(path)
    return path


def bare_python(*arguments: str, archive: Path | None = None, cwd: Path) -> subprocess.CompletedProcess[str]:
    """An interpreter without our environment, and without any package: as a node may have it."""
    base = os.path.realpath(sys.executable)
    env = {"PATH": os.environ["PATH"], **({"PYTHONPATH": str(archive)} if archive else {})}
    return subprocess.run([base, "-S", *arguments], env=env, cwd=cwd, capture_output=True, text=True, timeout=60, check=False)


def test_the_archive_runs_by_itself(archive: Path, tmp_path: Path) -> None:
    done = bare_python(str(archive), cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert "usage: supervisor.pyz leg|stage|salvage|keeper" in done.stderr


def test_all_of_it_can_be_imported_without_any_package(archive: Path, tmp_path: Path) -> None:
    script = """
import importlib, pkgutil, sys, onward
found = [m.name for m in pkgutil.walk_packages(onward.__path__, "onward.", onerror=lambda _: None) if not m.name.startswith("onward.torch")]
for name in found:
    importlib.import_module(name)
roots = {name.partition(".")[0] for name in sys.modules}
assert roots - {"__main__", "onward"} <= sys.stdlib_module_names, roots - sys.stdlib_module_names
print(onward.__file__, *found, sep="\\n")
"""
    done = bare_python("-c", script, archive=archive, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    where, *found = done.stdout.split()
    assert where.startswith(str(archive))
    assert {
        "onward.supervisor.main",
        "onward.sdk.run",
        "onward.checkpoints.watching.folder_look",
        "onward.schedulers.slurm.scheduler",
    } <= set(found)
    assert "onward.supervisor.stop.run_folder_watch" in found, "rooms within rooms too"


def test_what_it_has_begun_needs_the_archive_no_more(archive: Path, tmp_path: Path) -> None:
    """Its storage may be away when a leg ends, which imports more."""
    mine = tmp_path / "supervisor.pyz"
    shutil.copy(archive, mine)
    script = f"""
import os, sys
sys.path.insert(0, {str(mine)!r})
from onward.supervisor.held_code import hold_code
hold_code()
os.rename({str(mine)!r}, {str(tmp_path / "away")!r})
from onward.supervisor import main
from onward.pipelines.benchmarks import worker
print(main.__file__, worker.__spec__.loader.get_source(worker.__name__)[:3])
"""
    done = bare_python("-c", script, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, f'{mine}/onward/supervisor/main.py """\n'), done.stderr


def test_a_process_whose_archive_is_away_at_its_first_import_begins_when_it_is_back(archive: Path, tmp_path: Path) -> None:
    """Python remembers that there is nothing to import from, also when there is again."""
    mine, away = tmp_path / "supervisor.pyz", tmp_path / "away"
    shutil.copy(archive, mine)
    script = f"""
import os, sys, time, zipimport
sys.argv, sys.path[0] = [{str(mine)!r}], {str(mine)!r}
code = zipimport.zipimporter({str(mine)!r}).get_code("__main__")
import onward
os.rename({str(mine)!r}, {str(away)!r})
time.sleep = lambda seconds: os.rename({str(away)!r}, {str(mine)!r})
exec(code)
"""
    done = bare_python("-c", script, cwd=tmp_path)
    assert done.returncode == 2 and "usage: supervisor.pyz" in done.stderr, done.stderr


def test_a_training_finds_onward_in_it(archive: Path, tmp_path: Path) -> None:
    script = "import onward; run = onward.init(); run.log({'loss': 1.0}); print(run.leg)"
    done = bare_python("-c", script, archive=archive, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "1\n"), done.stderr


def test_it_is_compiled_so_that_it_starts_fast(archive: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(archive) as opened:
        names = set(opened.namelist())
    sources = {name for name in names if name.startswith("onward/") and name.endswith(".py")}
    assert sources and {f"{name}c" for name in sources} <= names
    script = "import onward.sdk.run as module; print(module.__spec__.cached or module.__spec__.origin, module.__loader__)"
    done = bare_python("-v", "-c", script, archive=archive, cwd=tmp_path)
    assert "onward/sdk/run.pyc" in done.stderr.replace("\\", "/") or "onward.sdk.run" in done.stderr


def test_freezing_twice_gives_the_same_modules(archive: Path, tmp_path: Path) -> None:
    build_archive(tmp_path / "again.pyz")
    with zipfile.ZipFile(archive) as first, zipfile.ZipFile(tmp_path / "again.pyz") as second:
        assert {i.filename: i.CRC for i in first.infolist()} == {i.filename: i.CRC for i in second.infolist()}
    assert os.listdir(tmp_path) == ["again.pyz"]


def test_a_module_is_compiled_again_only_if_its_source_is_another() -> None:
    def module(text: bytes, compiled: dict[str, bytes]) -> bytes:
        with zipfile.ZipFile(io.BytesIO(pack("", {"module.py": text}, compiled=compiled))) as opened:
            return opened.read("module.pyc")

    first = module(b"x = 1", {})
    earlier = {"module.pyc": first + b"as it was compiled earlier"}
    assert module(b"x = 1", earlier) == earlier["module.pyc"]
    assert module(b"x = 2", earlier) == module(b"x = 2", {}) != first
    assert module(b"x = 1", {"module.pyc": b"of another Python" + first}) == first


@pytest.mark.parametrize("damage", [b"", b"no archive", b"\0"])
def test_a_damaged_archive_of_an_earlier_run_harms_no_later_one(archive: Path, tmp_path: Path, damage: bytes) -> None:
    share = tmp_path / "supervisors"
    build_archive(tmp_path / "first.pyz", share=share)
    [kept] = share.iterdir()
    content = kept.read_bytes()
    kept.unlink()
    kept.write_bytes(content.replace(b"usage: supervisor.pyz", b"usage: SUPERVISOR.pyz") if damage == b"\0" else damage)
    build_archive(tmp_path / "second.pyz", share=share)
    done = bare_python(str(tmp_path / "second.pyz"), cwd=tmp_path)
    assert "usage: supervisor.pyz leg|stage" in done.stderr


def test_only_what_lives_a_leg_is_frozen(archive: Path) -> None:
    with zipfile.ZipFile(archive) as opened:
        rooms = {name.split("/")[1] for name in opened.namelist() if name.count("/") > 1}
    assert rooms == {"sdk", "torch", "model", "rundir", "checkpoints", "schedulers", "supervisor", "pipelines"}


def test_modules_of_sub_packages_are_frozen_too(archive: Path) -> None:
    with zipfile.ZipFile(archive) as opened:
        assert {"onward/schedulers/slurm/__init__.py", "onward/schedulers/slurm/site_limits.pyc"} <= set(opened.namelist())
