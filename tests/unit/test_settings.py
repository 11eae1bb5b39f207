"""The settings file and its profiles of clusters."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from onward.errors import InvalidInput, NotFound
from onward.model.spec import Cluster, Resources
from onward.operations.admin.doctor import examine_cluster
from onward.operations.context import OperationsContext
from onward.settings import ClusterSettings, Settings, load_settings, settings_path

Write = Callable[[str], dict[str, str]]

LAB = """\
root = "$WORK/runs"
cluster = "lab"

[clusters.lab]
scheduler = "slurm"
root = "~/lab-runs"
local-disk = "/local"
python = "/usr/bin/python3.11"
defaults = { partition = "gpu", time = "24:00:00", mem = "32G", cpus-per-task = 4, gpus = 1 }

[clusters.local]
cpus = 8
mem = "16G"
gpus = 0
"""


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Write a settings file; the answer is an environment that names it."""

    def do(text: str) -> dict[str, str]:
        (tmp_path / "settings.toml").write_text(text)
        return {"ONWARD_SETTINGS": str(tmp_path / "settings.toml"), "HOME": "/home/me", "WORK": "/work"}

    return do


def nothing_on_the_path(program: str) -> str | None:
    return None


def everything_on_the_path(program: str) -> str | None:
    return f"/usr/bin/{program}"


def problems(env: dict[str, str]) -> list[str]:
    with pytest.raises(InvalidInput) as caught:
        load_settings(env)
    answer = str(caught.value).splitlines()
    assert all(line.startswith(f"{env['ONWARD_SETTINGS']}: ") for line in answer)
    return [line.removeprefix(f"{env['ONWARD_SETTINGS']}: ") for line in answer]


# ── the file ──────────────────────────────────────────────────────────────────


def test_without_a_file_everything_has_a_default(tmp_path: Path) -> None:
    assert load_settings({}) == load_settings({"HOME": str(tmp_path)}) == Settings()


def test_the_file_is_looked_for_where_its_variables_say() -> None:
    assert settings_path({"ONWARD_SETTINGS": "/a/b.toml", "XDG_CONFIG_HOME": "/x", "HOME": "/h"}) == Path("/a/b.toml")
    assert settings_path({"XDG_CONFIG_HOME": "/x", "HOME": "/h"}) == Path("/x/onward/settings.toml")
    assert settings_path({"XDG_CONFIG_HOME": "x", "HOME": "/h"}) == Path("/h/.config/onward/settings.toml")
    assert settings_path({"ONWARD_SETTINGS": "", "HOME": "/h"}) == Path("/h/.config/onward/settings.toml")
    assert settings_path({}) is None


def test_a_file_that_was_named_must_be_there(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="no such file"):
        load_settings({"ONWARD_SETTINGS": str(tmp_path / "none.toml")})


def test_the_file_in_the_home_folder_is_read(tmp_path: Path) -> None:
    folder = tmp_path / ".config" / "onward"
    folder.mkdir(parents=True)
    (folder / "settings.toml").write_text('root = "/runs"\n')
    assert load_settings({"HOME": str(tmp_path)}).default_root == Path("/runs")


def test_every_key_is_read(write: Write) -> None:
    env = write(LAB)
    assert load_settings(env) == Settings(
        source=Path(env["ONWARD_SETTINGS"]),
        default_root=Path("/work/runs"),
        default_cluster="lab",
        clusters={
            "lab": ClusterSettings(
                name="lab",
                scheduler="slurm",
                root=Path("/home/me/lab-runs"),
                local_disk="/local",
                python="/usr/bin/python3.11",
                defaults=Resources(partition="gpu", time=86400, mem=32768, cpus_per_task=4, gpus="1"),
            ),
            "local": ClusterSettings(name="local", scheduler="local", cpus=8, mem=16384, gpus=0),
        },
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('rot = "/x"', "rot: unknown key (did you mean root?); expected one of root, cluster, clusters"),
        ("root = 1", "root: found 1, expected a path that begins with /"),
        ('root = "runs"', "root: found 'runs', expected a path that begins with /"),
        ('root = "$NOWHERE/x"', "root: found $NOWHERE, which is not set here"),
        ('root = "$(id)"', "root: found a $ without a variable name"),
        (
            'cluster = "lba"\n[clusters.lab]\nscheduler = "slurm"',
            "cluster: found 'lba', expected one of auto, local, slurm, gridengine, lab",
        ),
        ("clusters = 1", "clusters: found 1, expected keys and values"),
        ("[clusters.lab]", "clusters.lab.scheduler: missing, expected local, slurm or gridengine"),
        ('[clusters.my_lab]\nscheduler = "slurm"\nlocal_dsk = "/x"', "clusters.my_lab.local-dsk: unknown key (did you mean local-disk?)"),
        ('[clusters.lab]\nscheduler = "slurm"\nnotify = false', "clusters.lab.notify: only a gridengine cluster has this"),
        ('[clusters.lab]\nscheduler = "slurm"\nnames = { mem = "h_vmem" }', "clusters.lab.names: only a gridengine cluster has this"),
        ('[clusters.lab]\nscheduler = "slurm"\noptions = { a = "b" }', "clusters.lab.options: only clusters of a plugin have these"),
        ("[clusters.local]\nlegs-ahead = 3", "clusters.local.legs-ahead: jobs of the local queue may submit"),
        ('[clusters.gridengine]\nnames = { memo = "h_vmem" }', "clusters.gridengine.names.memo: unknown key (did you mean mem?)"),
        ('[clusters.gridengine]\nnames = { mem = "h vmem" }', "clusters.gridengine.names.mem: found 'h vmem', expected a resource"),
        ('[clusters.gridengine]\nnames = { mem = "-l" }', "clusters.gridengine.names.mem: found '-l', expected a resource"),
        ('[clusters.gridengine]\nnames = { partition = "-l" }', "clusters.gridengine.names.partition: found '-l', expected a resource"),
        ('[clusters.gridengine]\nnames = { mem = "m_{slots}" }', "clusters.gridengine.names.mem: found 'm_{slots}', expected no braces"),
        (
            '[clusters.gridengine]\nnames = { nodes = "m_{tasks}" }',
            "clusters.gridengine.names.nodes: found 'm_{tasks}', expected no braces except {slots}",
        ),
        (
            '[clusters.gridengine]\nnames = { nodes = "-pe" }',
            "clusters.gridengine.names.nodes: found '-pe', expected a parallel environment",
        ),
        ('[clusters.gridengine]\nnames = { time = "s_rt" }', "clusters.gridengine.names.time: found 's_rt', expected h_rt"),
        (
            '[clusters.gridengine]\nnames = { gpu-type = "a", gpu_type = "b" }',
            "clusters.gridengine.names.gpu_type: found twice",
        ),
        ("[clusters.gridengine]\nlegs-ahead = 100000", "clusters.gridengine.legs-ahead: found 100000, expected at most 100"),
        ("[clusters.gridengine]\nlegs-ahead = -1", "clusters.gridengine.legs-ahead: found -1, expected a whole number"),
        ('[clusters.gridengine]\nnotify = "yes"', "clusters.gridengine.notify: found 'yes', expected true or false"),
        ('[clusters.slurm]\nscheduler = "local"', "clusters.slurm.scheduler: found 'local', expected 'slurm'"),
        ('[clusters.auto]\nscheduler = "local"', "clusters.auto: auto is reserved"),
        ('[clusters."a b"]\nscheduler = "local"', "clusters.a b: found 'a b', expected a letter and then"),
        ('[clusters.lab]\nscheduler = "slurm"\ncpus = 4', "clusters.lab.cpus: only a local cluster has slots"),
        ("[clusters.local]\ncpus = 0", "clusters.local.cpus: found 0, expected a whole number, 1 or more"),
        ("[clusters.slurm]\ndefaults = { tiem = 1 }", "clusters.slurm.defaults.tiem: unknown key (did you mean time?)"),
        ("[clusters.slurm]\ndefaults = { time = 12:00:00 }", "clusters.slurm.defaults.time: found 12:00:00, expected a time"),
        ('[clusters.slurm]\nlocal-disk = "$TMPDIR"', "clusters.slurm.local-disk: found '$TMPDIR', expected a path on the nodes"),
        ('[clusters.slurm]\npython = "-m x"', "clusters.slurm.python.0: found '-m x', expected a program"),
        ('[clusters.slurm]\npython = ["python3.12", "-m x"]', "clusters.slurm.python.1: found '-m x', expected a program"),
        ("root = ", "not TOML: Invalid value (at line 1, column 8)"),
        ('root = "/a"\nroot = "/b"', "not TOML: Cannot overwrite a value (at line 2, column 12)"),
    ],
)
def test_a_wrong_setting_is_told_with_its_file_and_key(text: str, message: str, write: Write) -> None:
    lines = problems(write(text + "\n"))
    assert len(lines) == 1
    assert lines[0].startswith(message)


def test_a_scheduler_that_is_not_installed_here_fails_where_its_cluster_is_used_and_nowhere_else(write: Write) -> None:
    env = write('[clusters.box]\nscheduler = "tsp"\n[clusters.lab]\nscheduler = "slrum"\n')
    settings = load_settings(env)
    assert settings.cluster("local")[0].scheduler == "local"
    context = OperationsContext(env=env, _settings=settings)
    with pytest.raises(InvalidInput, match=r"clusters\.box\.scheduler: no scheduler named 'tsp' in this environment") as error:
        context.scheduler(settings.cluster("box")[0])
    assert "install it in the environment that has Onward" in error.value.hint
    assert "entry point" in error.value.hint
    with pytest.raises(InvalidInput, match="did you mean slurm"):
        context.scheduler(settings.cluster("lab")[0])
    fine, _, words = examine_cluster(context, "box")
    assert (fine, "no scheduler named 'tsp'" in words) == (False, True)


def test_all_wrong_settings_are_told_at_once(write: Write) -> None:
    assert len(problems(write('rot = 1\ncluster = "a b"\n[clusters.local]\ncpus = 0\nmem = "x"\n'))) == 4
    assert len(problems(write('root = "$NO/x"\ncluster = "none"\n[clusters.a]\n[clusters.b]\n'))) == 4


def test_a_file_that_is_not_utf8_is_named(tmp_path: Path) -> None:
    (tmp_path / "s.toml").write_bytes(b'root = "/\xff"\n')
    with pytest.raises(InvalidInput, match=r"s\.toml:1: not UTF-8"):
        load_settings({"ONWARD_SETTINGS": str(tmp_path / "s.toml")})


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    text=st.text() | st.lists(st.sampled_from(["root", "clusters", "[", "]", "=", '"', "\n", ".", "a", "1", "{", "}", ","])).map("".join)
)
def test_any_text_is_settings_or_invalid_input(text: str, tmp_path: Path) -> None:
    (tmp_path / "s.toml").write_text(text)
    try:
        load_settings({"ONWARD_SETTINGS": str(tmp_path / "s.toml")})
    except InvalidInput as error:
        assert error.message


# ── clusters ──────────────────────────────────────────────────────────────────


def test_auto_is_slurm_where_sbatch_is_and_this_machine_elsewhere() -> None:
    assert Settings().cluster("auto", everything_on_the_path) == (
        Cluster(name="slurm", scheduler="slurm"),
        ClusterSettings(name="slurm", scheduler="slurm"),
    )
    assert Settings().cluster("auto", nothing_on_the_path)[0] == Cluster(name="local", scheduler="local")


def test_auto_is_the_cluster_of_the_settings_where_they_name_one(write: Write) -> None:
    cluster, profile = load_settings(write(LAB)).cluster("auto", nothing_on_the_path)
    assert cluster == Cluster(name="lab", scheduler="slurm", local_disk="/local", python="/usr/bin/python3.11")
    assert profile.root == Path("/home/me/lab-runs")


def test_a_profile_may_list_several_pythons(write: Write) -> None:
    settings = load_settings(write('[clusters.lab]\nscheduler = "slurm"\npython = ["/opt/py/bin/python3.12", "python3.11"]\n'))
    cluster, _ = settings.cluster("lab")
    assert (cluster.python, cluster.other_pythons) == ("/opt/py/bin/python3.12", ("python3.11",))


def test_a_default_of_auto_is_no_circle(write: Write) -> None:
    assert load_settings(write('cluster = "auto"\n')).cluster("auto", nothing_on_the_path)[0].name == "local"


def test_local_and_slurm_are_there_without_profiles_and_a_profile_sets_them_up(write: Write) -> None:
    assert Settings().cluster("slurm", nothing_on_the_path)[0].scheduler == "slurm"
    assert load_settings(write(LAB)).cluster("local")[1].cpus == 8


def test_a_cluster_nobody_knows_is_answered_with_those_known(write: Write) -> None:
    with pytest.raises(NotFound, match="no cluster named 'lba'") as caught:
        load_settings(write(LAB)).cluster("lba")
    assert caught.value.hint == "did you mean lab? known are auto, local, slurm, gridengine, lab"


def test_auto_is_grid_engine_where_its_qsub_is_and_not_where_torques_is() -> None:
    def grid_engine(program: str) -> str | None:
        return f"/sge/{program}" if program in ("qsub", "qconf") else None

    def torque(program: str) -> str | None:
        return f"/torque/{program}" if program == "qsub" else None

    assert Settings().cluster("auto", grid_engine)[0] == Cluster(name="gridengine", scheduler="gridengine")
    assert Settings().cluster("auto", torque)[0].name == "local"


def test_a_profile_of_grid_engine_says_what_its_site_calls_things(write: Write) -> None:
    env = write(
        '[clusters.scc]\nscheduler = "gridengine"\nlegs-ahead = 4\nnotify = false\n'
        'names = { mem = "mem_per_core/slot", cpus_per_task = "omp", nodes = "mpi_{slots}_tasks_per_node", partition = "-q" }\n'
    )
    cluster, _ = load_settings(env).cluster("scc")
    assert (cluster.legs_ahead, cluster.notify) == (4, False)
    assert cluster.names == {
        "mem": "mem_per_core/slot",
        "cpus-per-task": "omp",
        "nodes": "mpi_{slots}_tasks_per_node",
        "partition": "-q",
    }


def test_the_runs_folder_is_the_first_that_anyone_names(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    named = ClusterSettings(name="a", scheduler="local", root=Path("/a"))
    unnamed = ClusterSettings(name="b", scheduler="local")
    answer = Settings(default_root=Path("/s"))
    assert answer.root({"ONWARD_ROOT": "/env"}, named) == Path("/env")
    assert answer.root({"ONWARD_ROOT": "env"}, named) == tmp_path / "env"
    assert answer.root({"ONWARD_ROOT": ""}, named) == Path("/a")
    assert answer.root({}, unnamed) == answer.root({}) == Path("/s")
    assert Settings().root({}, unnamed) == tmp_path / "runs"


# ── defaults ──────────────────────────────────────────────────────────────────


def defaults(resources: Resources) -> ClusterSettings:
    return ClusterSettings(name="a", scheduler="slurm", defaults=resources)


def test_defaults_are_taken_where_the_run_asks_nothing() -> None:
    profile = defaults(Resources(time=60, mem=1024, partition="gpu"))
    assert profile.with_defaults(Resources(mem=0, nodes=2)) == Resources(time=60, mem=0, partition="gpu", nodes=2)


def test_options_in_the_schedulers_own_words_are_defaults_too() -> None:
    profile = defaults(Resources(extra=("--licenses=a", "--mem-per-cpu=4G")))
    asked = Resources(extra=("--hint=nomultithread", "--licenses=a"))
    assert profile.with_defaults(asked).extra == ("--licenses=a", "--mem-per-cpu=4G", "--hint=nomultithread")


@pytest.mark.parametrize("asked", [Resources(gpus="0"), Resources(gpus="a100:2"), Resources(gres="gpu:2")])
@pytest.mark.parametrize("default", [Resources(gpus="1"), Resources(gres="gpu:1")])
def test_gpus_that_a_run_asks_for_are_not_added_to_the_defaults(asked: Resources, default: Resources) -> None:
    assert defaults(default).with_defaults(asked) == asked


def test_other_generic_resources_stay_beside_the_gpus_that_a_run_asks_for() -> None:
    assert defaults(Resources(gres="tmp:20G")).with_defaults(Resources(gpus="1")) == Resources(gpus="1", gres="tmp:20G")
