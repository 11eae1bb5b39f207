"""Known frameworks are complete by their own last act, whatever the order and however slow the rest."""

from __future__ import annotations

import io
import json
import os
import struct
import zipfile
from collections.abc import Mapping
from pathlib import Path

import pytest

from onward.checkpoints.watching.file_endings import is_cut_off
from onward.checkpoints.watching.frameworks import FrameworkVerdict, StepListing, judge, stands_alone
from onward.checkpoints.watching.watcher import SaveWatcher

NOW = 1_000_000.0

HF = ("config.json", "model.safetensors", "training_args.bin", "optimizer.pt", "scheduler.pt")


def listing(*files: str, said: Mapping[str, str] | None = None) -> StepListing:
    return StepListing(step=500, files={name: index for index, name in enumerate(files)}, pointers=said or {})


def checkpoint(*files: str) -> StepListing:
    return listing(*(f"checkpoint-500/{name}" for name in files))


@pytest.mark.parametrize(
    ("files", "verdict"),
    [
        (HF, FrameworkVerdict.NOT_YET),
        ((*HF, "rng_state.pth"), FrameworkVerdict.NOT_YET),
        ((*HF, "trainer_state.json"), FrameworkVerdict.NOT_YET),  # older versions write rng_state.pth after it
        ((*HF, "rng_state.pth", "trainer_state.json"), FrameworkVerdict.COMPLETE),
        (("model.safetensors", "training_args.bin", "trainer_state.json"), FrameworkVerdict.COMPLETE),  # save_only_model
        ((*HF, "rng_state_1.pth", "trainer_state.json"), FrameworkVerdict.NOT_YET),
        (
            (*HF, "rng_state_0.pth", "rng_state_1.pth", "trainer_state.json"),
            FrameworkVerdict.NOT_MINE,
        ),  # are there more? earlier saves tell
    ],
)
def test_hugging_face_is_complete_with_its_state_and_random_numbers(files: tuple[str, ...], verdict: FrameworkVerdict) -> None:
    assert judge(checkpoint(*files)) is verdict


@pytest.mark.parametrize(
    ("latest", "verdict"),
    [
        (None, FrameworkVerdict.DOUBTFUL),
        ("global_step400", FrameworkVerdict.NOT_YET),
        ("global_step500", FrameworkVerdict.COMPLETE),
        ("global_step600", FrameworkVerdict.OVERTAKEN),
    ],
)
def test_deepspeed_is_complete_when_latest_names_it(latest: str | None, verdict: FrameworkVerdict) -> None:
    files = ("global_step500/mp_rank_00_model_states.pt", "global_step500/bf16_zero_pp_rank_0_mp_rank_00_optim_states.pt")
    assert judge(listing(*files, said={"latest": latest} if latest else None)) is verdict


@pytest.mark.parametrize(
    ("said", "verdict"),
    [
        ("400", FrameworkVerdict.NOT_YET),
        ("500", FrameworkVerdict.COMPLETE),
        ("600", FrameworkVerdict.OVERTAKEN),
        ("release", FrameworkVerdict.DOUBTFUL),
    ],
)
def test_megatron_is_complete_when_its_tracker_says_its_iteration(said: str, verdict: FrameworkVerdict) -> None:
    files = ("iter_0000500/mp_rank_00/model_optim_rng.pt",)
    assert judge(listing(*files, said={"latest_checkpointed_iteration.txt": said})) is verdict


@pytest.mark.parametrize(
    ("files", "verdict"),
    [
        (("step-500/__0_0.distcp", "step-500/__1_0.distcp"), FrameworkVerdict.NOT_YET),
        (("step-500/__0_0.distcp", "step-500/__1_0.distcp", "step-500/.metadata"), FrameworkVerdict.COMPLETE),
        (
            ("step-500/__0_0.distcp", "step-500/.metadata", "step-500/__1_0.distcp"),
            FrameworkVerdict.NOT_YET,
        ),  # written over: the mark is older
        (("step-500/model/__0_0.distcp", "step-500/model/.metadata", "step-500/optim/__0_0.distcp"), FrameworkVerdict.NOT_YET),
        (("step-500/model/__0_0.distcp", "step-500/model/.metadata", "step-500/rng.pt"), FrameworkVerdict.NOT_MINE),
    ],
)
def test_torch_distributed_is_complete_with_its_metadata(files: tuple[str, ...], verdict: FrameworkVerdict) -> None:
    assert judge(listing(*files)) is verdict


@pytest.mark.parametrize(
    ("files", "verdict"),
    [
        (("500/default/_METADATA", "500/_CHECKPOINT_METADATA"), FrameworkVerdict.COMPLETE),
        (("500/default/d/1", "500/commit_success.txt"), FrameworkVerdict.COMPLETE),
        (("500/default.orbax-checkpoint-tmp-17/d/1", "500/_CHECKPOINT_METADATA"), FrameworkVerdict.NOT_YET),
    ],
)
def test_orbax_is_complete_with_its_mark_and_without_its_working_folder(files: tuple[str, ...], verdict: FrameworkVerdict) -> None:
    assert judge(listing(*files)) is verdict


def test_files_of_no_framework_are_nobodys() -> None:
    assert judge(listing("model_500.pt", "optim_500.pt")) is FrameworkVerdict.NOT_MINE


def test_a_single_file_of_lightning_or_keras_stands_alone() -> None:
    assert stands_alone(listing("epoch=1-step=500.ckpt")) and stands_alone(listing("500.weights.h5"))
    assert not stands_alone(listing("model_500.pt")) and not stands_alone(listing("a_500.ckpt", "b_500.ckpt"))


# ── on a disk ─────────────────────────────────────────────────────────────────


def put(folder: Path, *names: str, content: bytes = b"x", at: float = NOW) -> None:
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        os.utime(path, (at, at))


def seen(watcher: SaveWatcher, *, at: float, closed: bool = False) -> dict[int | None, list[str]]:
    return {candidate.step: sorted(candidate.sources) for candidate in watcher.ready(now=at, closed=closed)}


def test_a_slow_save_of_hugging_face_is_not_published_before_its_last_file(tmp_path: Path) -> None:
    watcher = SaveWatcher(tmp_path)
    put(tmp_path, *(f"checkpoint-500/{name}" for name in HF))
    assert seen(watcher, at=NOW + 5000) == {}
    assert seen(watcher, at=NOW + 5000, closed=True) == {}
    assert watcher.incomplete == [(500, "its framework had not finished writing it")]
    put(tmp_path, "checkpoint-500/rng_state.pth", "checkpoint-500/trainer_state.json", at=NOW + 5000)
    assert list(seen(watcher, at=NOW + 5003)) == [500], "and then at once, although it is the first"


def test_a_step_of_deepspeed_goes_with_the_latest_that_names_it(tmp_path: Path) -> None:
    """With one that names a newer step, it could never be loaded."""
    watcher = SaveWatcher(tmp_path)
    put(tmp_path, "global_step100/mp_rank_00_model_states.pt")
    put(tmp_path, "latest", content=b"global_step100")
    [candidate] = watcher.ready(now=NOW + 3)
    assert sorted(candidate.sources) == ["global_step100/mp_rank_00_model_states.pt", "latest"]
    put(tmp_path, "global_step200/mp_rank_00_model_states.pt", at=NOW + 10)
    assert list(seen(watcher, at=NOW + 100)) == [100], "the newer one is not named yet"
    put(tmp_path, "latest", content=b"global_step200", at=NOW + 110)
    assert not watcher.unchanged(candidate), "it is not to appear any more"
    assert list(seen(watcher, at=NOW + 120)) == [200]


def test_deepspeed_that_writes_no_latest_is_complete_after_a_long_time_or_with_the_next(tmp_path: Path) -> None:
    watcher = SaveWatcher(tmp_path)
    put(tmp_path, "global_step100/mp_rank_00_model_states.pt")
    assert seen(watcher, at=NOW + 590) == {}
    assert seen(watcher, at=NOW + 590, closed=True) == {}
    assert list(seen(watcher, at=NOW + 601)) == [100]
    put(tmp_path, "global_step200/mp_rank_00_model_states.pt", at=NOW + 20)
    assert list(seen(watcher, at=NOW + 30)) == [100]


def test_the_hidden_metadata_of_torch_distributed_is_carried(tmp_path: Path) -> None:
    put(tmp_path, "step-7/__0_0.distcp", "step-7/.metadata")
    assert seen(SaveWatcher(tmp_path), at=NOW + 3) == {7: ["step-7/.metadata", "step-7/__0_0.distcp"]}


def test_torch_distributed_in_the_folder_itself_is_one_checkpoint_with_its_metadata(tmp_path: Path) -> None:
    watcher = SaveWatcher(tmp_path)
    put(tmp_path, "__0_0.distcp", "__1_0.distcp")
    assert seen(watcher, at=NOW + 5000) == {}
    put(tmp_path, ".metadata", at=NOW + 5000)
    assert seen(watcher, at=NOW + 5031) == {None: [".metadata", "__0_0.distcp", "__1_0.distcp"]}


def test_a_working_folder_of_orbax_is_not_seen(tmp_path: Path) -> None:
    put(tmp_path, "500.orbax-checkpoint-tmp-1234/default/d/1")
    assert seen(SaveWatcher(tmp_path), at=NOW + 5000, closed=True) == {}


def test_a_single_file_of_lightning_is_complete_when_it_is_quiet_even_the_first(tmp_path: Path) -> None:
    put(tmp_path, "epoch=0-step=100.ckpt")
    assert list(seen(SaveWatcher(tmp_path), at=NOW + 3)) == [100]


# ── files that know how long they are ─────────────────────────────────────────


def archive(comment: bytes = b"") -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as file:
        file.writestr("data", b"d" * 1000)
        file.comment = comment
    return made.getvalue()


def tensors(data: bytes = b"12345678") -> bytes:
    header = json.dumps({"__metadata__": {"format": "pt"}, "w": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}}).encode()
    return struct.pack("<Q", len(header)) + header + data


@pytest.mark.parametrize(
    ("name", "content", "cut"),
    [
        ("model_7.pt", archive(), False),
        ("model_7.keras", archive(b"a comment"), False),
        ("model_7.pt", archive()[:-30], True),
        ("model_7.ckpt", archive()[:200], True),
        ("model_7.pt", b"no archive at all", False),
        ("model_7.safetensors", tensors(), False),
        ("model_7.safetensors", tensors(b"1234"), True),
        ("model_7.safetensors", tensors()[:30], True),
        ("model_7.safetensors", b"short", False),
        ("model_7.safetensors", b"something else that is long enough", False),
        ("model_7.other", archive()[:200], False),
    ],
)
def test_a_file_that_lacks_its_end_is_no_checkpoint(tmp_path: Path, name: str, content: bytes, cut: bool) -> None:
    put(tmp_path, name, content=content)
    assert is_cut_off(tmp_path / name) is cut
    watcher = SaveWatcher(tmp_path)
    assert (seen(watcher, at=NOW + 100, closed=True) == {}) is cut
    assert watcher.incomplete == ([(7, f"{name} is not complete")] if cut else [])
