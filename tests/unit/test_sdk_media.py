"""What W&B's scripts hand over beside numbers: kept among the run's artifacts, or told of once; a training ends of none of it."""

from __future__ import annotations

import csv
import json
import struct
import sys
import wave
import zlib
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy
import pytest

import onward as wandb
from onward.sdk import contract, stderr
from onward.sdk import process_run as module
from onward.sdk.run import TrainingRun
from onward.sdk.unmanaged import exit_state


@pytest.fixture(autouse=True)
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[TrainingRun]:
    for name in (contract.CHECKPOINT_DIR, contract.RUN_DIR):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv(contract.ROOT, str(tmp_path / "root"))
    monkeypatch.setattr(module, "_run", None)
    monkeypatch.setattr(stderr, "_said", set())
    monkeypatch.setattr(exit_state, "_hook", lambda: None)
    monkeypatch.chdir(tmp_path)
    yield wandb.init(project="digits")
    exit_state._watched.clear()


def kept(run: TrainingRun) -> dict[str, bytes]:
    return {path.relative_to(run.dir).as_posix(): path.read_bytes() for path in sorted(Path(run.dir).rglob("*")) if path.is_file()}


def entries(run: TrainingRun, kind: str) -> list[dict[str, Any]]:
    lines = [json.loads(line) for path in run.folder.rglob("*.jsonl") for line in path.read_text().splitlines()]
    return [line for line in lines if line.get("kind") == kind]


def pixels(png: bytes) -> tuple[int, int, int, bytes]:
    """Width, height, colour type and the rows of a PNG, each after its filter's number."""
    assert png.startswith(b"\x89PNG\r\n\x1a\n")
    width, height, _, colour = struct.unpack(">IIBB", png[16:26])
    length = struct.unpack(">I", png[33:37])[0]
    assert zlib.crc32(png[37 : 41 + length]) == struct.unpack(">I", png[41 + length : 45 + length])[0]
    return width, height, colour, zlib.decompress(png[41 : 41 + length])


def test_an_image_of_any_array_becomes_a_png(run: TrainingRun) -> None:
    wandb.log({"val/grey": wandb.Image(numpy.array([[0.0, 0.5, 1.0]])), "loss": 0.5}, step=7)
    wandb.log({"rgb": [wandb.Image(numpy.full((2, 1, 3), 9, dtype="uint8")), wandb.Image([[300, -4]], caption="odd")]}, step=8)
    files = kept(run)
    assert sorted(files) == ["media/images/rgb_8_0.png", "media/images/rgb_8_1.png", "media/images/val-grey_7.png"]
    assert pixels(files["media/images/val-grey_7.png"]) == (3, 1, 0, b"\0\x00\x80\xff")
    assert pixels(files["media/images/rgb_8_0.png"]) == (1, 2, 2, b"\0\x09\x09\x09" * 2)
    assert pixels(files["media/images/rgb_8_1.png"]) == (2, 1, 0, b"\0\xff\x00")
    first = entries(run, "artifact")[0]
    assert (first["path"], first["type"], first["stored"]) == ("media/images/val-grey_7.png", "image", True)
    assert run.summary["loss"] == 0.5


def test_without_numpy_lists_are_pictures_too(run: TrainingRun, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "numpy")
    wandb.log({"a": wandb.Image([[0.0, 1.0]]), "b": wandb.Image([[[1, 2, 3]]])})
    files = kept(run)
    assert pixels(files["media/images/a_0.png"]) == (2, 1, 0, b"\0\x00\xff")
    assert pixels(files["media/images/b_0.png"]) == (1, 1, 2, b"\0\x01\x02\x03")


class Tensor:
    """As PyTorch's: colours first, and no numpy array before it is asked for one."""

    def __init__(self, array: Any) -> None:
        self.array = numpy.asarray(array)
        self.shape = self.array.shape

    def detach(self) -> Tensor:
        return self

    cpu = detach

    def permute(self, *order: int) -> Tensor:
        return Tensor(self.array.transpose(order))

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return self.array


def test_a_tensors_colours_come_first(run: TrainingRun) -> None:
    wandb.log({"t": wandb.Image(Tensor(numpy.arange(6, dtype="uint8").reshape(3, 1, 2)))})
    assert pixels(kept(run)["media/images/t_0.png"]) == (2, 1, 2, b"\0\x00\x02\x04\x01\x03\x05")


def test_figures_and_files_are_kept_as_they_are(run: TrainingRun, tmp_path: Path) -> None:
    figure = SimpleNamespace(savefig=lambda file, format: file.write(b"drawn"))
    (tmp_path / "cat.jpg").write_bytes(b"jpeg")
    page = SimpleNamespace(to_html=lambda include_plotlyjs: "<p>", to_plotly_json=None)
    wandb.log({"live": page}, step=0)
    wandb.log({"plot": figure, "cat": wandb.Image("cat.jpg"), "film": wandb.Video("cat.jpg"), "page": wandb.Html("<b>hi</b>")})
    assert kept(run) == {
        "media/images/plot_1.png": b"drawn",
        "media/images/cat_1.jpg": b"jpeg",
        "media/videos/film_1.jpg": b"jpeg",
        "media/html/page_1.html": b"<b>hi</b>",
        "media/html/live_0.html": b"<p>",
    }


def test_sound_becomes_a_wave_file(run: TrainingRun) -> None:
    wandb.log({"beep": wandb.Audio(numpy.array([0.0, 1.0, -1.0]), sample_rate=8000)})
    with wave.open(f"{run.dir}/media/audio/beep_0.wav") as file:
        assert (file.getframerate(), file.getnchannels()) == (8000, 1)
        assert struct.unpack("<3h", file.readframes(3)) == (0, 32767, -32767)


def test_a_table_becomes_csv(run: TrainingRun) -> None:
    table = wandb.Table(columns=["id", "word"], data=[[1, "a,b"]])
    table.add_data(2, None)
    table.add_column("image", [wandb.Image([[0]]), {"x": 1}])
    wandb.log({"preds": table})
    rows = list(csv.reader(kept(run)["media/table/preds_0.csv"].decode().splitlines()))
    assert rows == [["id", "word", "image"], ["1", "a,b", "<Image>"], ["2", "", "{'x': 1}"]]
    assert table.get_column("id") == [1, 2]
    wandb.log({"chart": wandb.plot.line(table, "id", "word")})
    assert "media/table/chart_1.csv" in kept(run)


@pytest.mark.parametrize("values", [[1.0, 2.0, 6.0], numpy.array([1.0, 2.0, 6.0])], ids=type)
def test_of_a_histogram_three_numbers_are_kept(run: TrainingRun, values: Any, capsys: pytest.CaptureFixture[str]) -> None:
    wandb.log({"grads": wandb.Histogram(values)})
    wandb.log({"bins": wandb.Histogram(np_histogram=([1, 1], [0.0, 1.0, 2.0]))})
    assert (run.summary["grads.min"], run.summary["grads.mean"], run.summary["grads.max"]) == (1.0, 3.0, 6.0)
    assert (run.summary["bins.min"], run.summary["bins.mean"], run.summary["bins.max"]) == (0.0, 1.0, 2.0)
    assert capsys.readouterr().err.count("a Histogram is stored") == 1


def test_what_cannot_be_kept_is_said_and_the_step_is_logged(run: TrainingRun, capsys: pytest.CaptureFixture[str]) -> None:
    for step in range(2):
        odd = {"film": wandb.Video(numpy.zeros((2, 3, 4, 4))), "curve": wandb.plot.roc_curve([1], [0.5]), "flat": wandb.Image([])}
        wandb.log({"loss": 0.5, **odd}, step=step)
    err = capsys.readouterr().err
    assert err.count("film: Video is not stored: Video from ndarray cannot be stored; pass the path of a file") == 1
    assert err.count("plot.roc_curve() is accepted but not stored") == 1
    assert err.count("flat: Image is not stored") == 1
    assert (dict(run.summary), kept(run)) == ({"loss": 0.5}, {})


def test_a_disk_that_takes_no_file_ends_no_training(
    run: TrainingRun, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.replace", full)
    wandb.log({"image": wandb.Image([[0]]), "loss": 0.5})
    assert "could not be stored as an artifact: [Errno 28]" in capsys.readouterr().err
    assert kept(run) == {} and entries(run, "artifact") == []


def test_saved_files_are_copied_now_and_as_they_are_at_the_end(
    run: TrainingRun, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "a.txt").write_text("early")
    wandb.save("logs/*.txt")
    wandb.save(str(tmp_path / "logs" / "a.txt"))
    wandb.save(str(tmp_path / "logs" / "a.txt"), base_path=str(tmp_path))
    Path(run.dir, "own.txt").write_text("written there")
    wandb.save(f"{run.dir}/own.txt")
    assert wandb.save("none-*") == [] and "no such file" in capsys.readouterr().err
    assert kept(run)["logs/a.txt"] == kept(run)["a.txt"] == b"early"
    (tmp_path / "logs" / "a.txt").write_text("late")
    wandb.finish()
    assert kept(run)["logs/a.txt"] == b"late" and kept(run)["own.txt"] == b"written there"
    assert wandb.run is None and run.save() == []


def test_each_time_an_artifact_is_logged_it_is_another_version(run: TrainingRun, tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "x.bin").write_bytes(b"x")
    model = wandb.Artifact("net", type="model", metadata={"acc": 0.9})
    model.add_file(str(tmp_path / "data" / "x.bin"), name="../../w.bin")
    model.add_dir(str(tmp_path / "data"), name="all")
    model.add(wandb.Table(columns=["a"], data=[[1]]), "rows")
    model.add_reference("s3://bucket/key")
    with model.new_file("note.txt") as file:
        file.write("hello")
    assert wandb.log_artifact(model, aliases=["best"]).wait().version == "v0"
    assert wandb.log_artifact(str(tmp_path / "data"), name="net", type="model").version == "v1"
    files = kept(run)
    assert sorted(files) == [
        *("net/v0.json", "net/v0/all/x.bin", "net/v0/note.txt", "net/v0/references.txt", "net/v0/rows.csv", "net/v0/w.bin"),
        *("net/v1.json", "net/v1/x.bin"),
    ]
    assert json.loads(files["net/v0.json"]) == {"type": "model", "metadata": {"acc": 0.9}, "aliases": ["best"]}
    assert Path(wandb.use_artifact("me/digits/net:latest").download()).name == "v1"
    assert Path(wandb.use_artifact("net:v0").download(str(tmp_path / "copy")), "note.txt").read_text() == "hello"
    with pytest.raises(LookupError, match="pass their path to the script"):
        wandb.use_artifact("other:v3")


@pytest.mark.parametrize("add", ["add_file", "add_dir"])
def test_what_is_not_there_is_no_artifact(add: str) -> None:
    with pytest.raises(ValueError, match=r"Artifact\('net'\).*gone.*no such"):
        getattr(wandb.Artifact("net", "model"), add)("gone")


def test_in_a_job_files_are_laid_on_the_node(run: TrainingRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, folder in ((contract.CHECKPOINT_DIR, "ckpt"), (contract.RUN_DIR, "run"), (contract.ARTIFACTS_DIR, "node")):
        monkeypatch.setenv(name, str(tmp_path / folder))
    inside = TrainingRun.of_environment(name=None)
    inside.log({"image": wandb.Image([[0]])})
    assert [path.name for path in (tmp_path / "node").rglob("*.*")] == ["image_0.png"]
    assert inside.dir == str(tmp_path / "run" / "results" / "artifacts")


def test_words_that_do_nothing_here_are_taken(capsys: pytest.CaptureFixture[str]) -> None:
    assert wandb.login(key="x") is True
    wandb.watch(object(), log="all")
    wandb.define_metric("acc", summary="max")
    wandb.define_metric("acc", step_metric="epoch")
    wandb.alert("low", level=wandb.AlertLevel.WARN)
    assert (wandb.Settings(start_method="fork").start_method, len(wandb.util.generate_id())) == ("fork", 8)
    err = capsys.readouterr().err
    assert "gradients and weights are not logged" in err and "charts use steps" in err and "WARN: low" in err


def test_settings_may_say_how_a_run_begins(run: TrainingRun) -> None:
    assert wandb.init(settings=wandb.Settings(mode="disabled", reinit=True)).disabled


@pytest.mark.parametrize("name", ["sweep", "agent", "Api"])
def test_what_is_not_there_says_what_to_do_instead(name: str) -> None:
    assert not hasattr(wandb, name)
    with pytest.raises(AttributeError, match=f"onward has no {name}: .*(clone|HTTP)"):
        getattr(wandb, name)
