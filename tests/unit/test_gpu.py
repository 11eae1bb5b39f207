from __future__ import annotations

import os
import sys
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from onward.supervisor.background import sample_seconds
from onward.supervisor.telemetry.gpu import GpuSampler, step_gpus

UUIDS = ("GPU-aaaa-1", "GPU-bbbb-2", "GPU-cccc-3")


@dataclass
class FakeNvml:
    """Three cards; `mute` are the calls this driver does not support."""

    mute: set[str] = field(default_factory=set)
    NVML_TEMPERATURE_GPU: int = 0

    class NVMLError(Exception):
        pass

    def nvmlInit(self) -> None: ...

    def nvmlDeviceGetCount(self) -> int:
        return len(UUIDS)

    def nvmlDeviceGetHandleByIndex(self, index: int) -> int:
        return index

    def nvmlDeviceGetUUID(self, handle: int) -> bytes:
        return UUIDS[handle].encode()

    def nvmlDeviceGetName(self, handle: int) -> str:
        return f"Card {handle}"

    def nvmlDeviceGetMemoryInfo(self, handle: int) -> Any:
        self._speak("memory")
        return SimpleNamespace(used=(handle + 1) << 30, total=80 << 30)

    def nvmlDeviceGetUtilizationRates(self, handle: int) -> Any:
        self._speak("percent")
        return SimpleNamespace(gpu=50 + handle)

    def nvmlDeviceGetPowerUsage(self, handle: int) -> int:
        self._speak("power")
        return 250_500

    def nvmlDeviceGetTemperature(self, handle: int, _sensor: int) -> int:
        self._speak("temperature")
        return 61

    def _speak(self, what: str) -> None:
        if what in self.mute:
            raise self.NVMLError("Not Supported")


@pytest.fixture
def nvml(monkeypatch: pytest.MonkeyPatch) -> FakeNvml:
    fake = FakeNvml()
    monkeypatch.setitem(sys.modules, "pynvml", fake)
    return fake


def nvidia_smi(folder: Path, monkeypatch: pytest.MonkeyPatch, text: str, *, code: int = 0) -> None:
    """A machine without NVML whose nvidia-smi says this."""
    monkeypatch.setitem(sys.modules, "pynvml", None)
    (folder / "nvidia-smi").write_text(f"#!/bin/sh\ncat <<'END'\n{text}\nEND\nexit {code}\n")
    (folder / "nvidia-smi").chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")


def test_a_job_that_has_no_gpu_gets_no_samples(nvml: FakeNvml) -> None:
    assert GpuSampler(()).sample() == {}


@pytest.mark.parametrize(
    ("own", "seen"),
    [
        (("1",), {UUIDS[1]}),
        (("0", "2"), {UUIDS[0], UUIDS[2]}),
        (("GPU-cccc-3",), {UUIDS[2]}),
        (("GPU-bbbb",), {UUIDS[1]}),
        (("7",), set()),
        (("",), set()),
    ],
)
def test_a_job_sees_its_own_gpus_by_index_or_uuid(nvml: FakeNvml, own: tuple[str, ...], seen: set[str]) -> None:
    assert set(GpuSampler(own).sample()) == seen


@pytest.mark.parametrize(
    ("record", "own"),
    [
        ({"SLURM_JOB_GPUS": "0,1", "SLURM_STEP_GPUS": "2,3", "CUDA_VISIBLE_DEVICES": "2,3"}, ("2", "3")),
        ({"SLURM_JOB_GPUS": "0", "SLURM_STEP_GPUS": "1"}, ("1",)),
        ({"SLURM_JOB_GPUS": "0", "CUDA_VISIBLE_DEVICES": "NoDevFiles"}, ()),
        ({"SGE_HGR_gpu": "0 GPU-aaaa-1"}, ("0", "GPU-aaaa-1")),
        ({}, ()),
    ],
)
def test_a_step_on_another_node_has_that_nodes_gpus_and_not_the_first_ones(record: dict[str, str], own: tuple[str, ...]) -> None:
    assert step_gpus(record) == own


def test_the_driver_is_woken_by_the_first_sample_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    woken: list[str] = []

    class Sleepy(FakeNvml):
        def nvmlInit(self) -> None:
            woken.append("now")

    monkeypatch.setitem(sys.modules, "pynvml", Sleepy())
    sampler = GpuSampler(("0",))
    assert woken == []
    sampler.sample()
    sampler.sample()
    assert woken == ["now"]


def test_the_figures_are_in_the_units_their_names_say(nvml: FakeNvml) -> None:
    sampler = GpuSampler(("1",))
    assert sampler.sample() == {
        UUIDS[1]: {"percent": 51.0, "mem_used_mib": 2048.0, "mem_total_mib": 81920.0, "power_w": 250.5, "temperature_c": 61.0}
    }
    assert sampler.names == {UUIDS[1]: "Card 1"}


@pytest.mark.parametrize("mute", ["percent", "power", "temperature", "memory"])
def test_a_figure_that_a_card_does_not_tell_costs_no_other(nvml: FakeNvml, mute: str) -> None:
    nvml.mute = {mute}
    [figures] = GpuSampler(("0",)).sample().values()
    assert len(figures) == (3 if mute == "memory" else 4)
    assert not any(name.startswith(mute if mute != "memory" else "mem") for name in figures)


def test_without_nvml_nvidia_smi_is_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "0, GPU-aaaa-1, NVIDIA A100, 97, 1000, 40960, 301.50, 65\n1, GPU-bbbb-2, NVIDIA A100, [N/A], 0, 40960, [N/A], 31"
    nvidia_smi(tmp_path, monkeypatch, text)
    sampler = GpuSampler(("0", "1"))
    assert sampler.sample() == {
        "GPU-aaaa-1": {"percent": 97.0, "mem_used_mib": 1000.0, "mem_total_mib": 40960.0, "power_w": 301.5, "temperature_c": 65.0},
        "GPU-bbbb-2": {"mem_used_mib": 0.0, "mem_total_mib": 40960.0, "temperature_c": 31.0},
    }
    assert sampler.names["GPU-bbbb-2"] == "NVIDIA A100"
    assert set(GpuSampler(("1",)).sample()) == {"GPU-bbbb-2"}


def test_a_broken_driver_is_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nvidia_smi(tmp_path, monkeypatch, "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.", code=9)
    assert GpuSampler(("0",)).sample() == {}


def test_a_machine_without_any_of_it_has_no_samples(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", None)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert GpuSampler(("0",)).sample() == {}


# ── how often ─────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(("message", "seconds"), [("", 10), ("60", 60), ("1", 1), ("0.5", 10), ("3600", 10), ("often", 10), ("nan", 10)])
def test_the_interval_is_the_one_that_the_runs_variable_says_if_it_can_be(
    message: str, seconds: float, caplog: pytest.LogCaptureFixture
) -> None:
    assert sample_seconds({"NVIDIA_SMI_DELAY_SECONDS": message}) == seconds
    wrong = message not in ("", "60", "1")
    assert ("expected seconds from 1 to 120; taking 10" in caplog.text) is wrong


def test_without_the_variable_samples_are_ten_seconds_apart() -> None:
    assert sample_seconds({}) == 10
