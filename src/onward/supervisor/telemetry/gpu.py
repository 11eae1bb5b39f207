"""Samples of the job's own GPUs, by UUID: through NVML, else nvidia-smi, else none, and that is no error."""

from __future__ import annotations

import logging
import re
import shutil
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any

from onward.errors import SchedulerUnavailable
from onward.schedulers.command import run_command

log = logging.getLogger(__name__)

_QUERY = "index,uuid,name,utilization.gpu,memory.used,memory.total,power.draw,temperature.gpu"
GpuSample = dict[str, dict[str, float]]  # UUID → figures


class GpuSampler:
    """`own` are the job's GPUs as the scheduler names them (indexes or UUIDs). Empty: the job has none, and gets no samples."""

    def __init__(self, own: Sequence[str]) -> None:
        self._own = tuple(own)
        self.names: dict[str, str] = {}  # UUID → model

    def sample(self) -> GpuSample:
        if not self._own:
            return {}
        if self._nvml is not None:
            return self._by_nvml(self._nvml)
        return self._by_smi() if self._smi else {}

    @cached_property
    def _nvml(self) -> Any:
        """Opened at the first sample, where nobody waits for it: a driver that sleeps takes seconds to wake."""
        try:
            import pynvml

            pynvml.nvmlInit()
        except Exception as error:  # the module is missing, or there is no driver
            log.info("NVML is not available: %s", error)
            return None
        return pynvml

    @cached_property
    def _smi(self) -> bool:
        return shutil.which("nvidia-smi") is not None

    def _mine(self, index: int, uuid: str) -> bool:
        return str(index) in self._own or any(name and uuid.startswith(name) for name in self._own if not name.isdigit())

    def _by_nvml(self, nvml: Any) -> GpuSample:
        found: GpuSample = {}
        for index in range(nvml.nvmlDeviceGetCount()):
            handle = nvml.nvmlDeviceGetHandleByIndex(index)
            uuid = _text(nvml.nvmlDeviceGetUUID(handle))
            if not self._mine(index, uuid):
                continue
            self.names[uuid] = _text(nvml.nvmlDeviceGetName(handle))
            found[uuid] = _figures(nvml, handle)
        return found

    def _by_smi(self) -> GpuSample:
        try:
            answer = run_command(["nvidia-smi", f"--query-gpu={_QUERY}", "--format=csv,noheader,nounits"], timeout=10)
        except SchedulerUnavailable:
            return {}
        found: GpuSample = {}
        for line in answer.out.splitlines():
            parts = [part.strip() for part in line.split(",")]
            if len(parts) != 8 or not parts[0].isdigit() or not self._mine(int(parts[0]), parts[1]):
                continue
            self.names[parts[1]] = parts[2]
            names = ("percent", "mem_used_mib", "mem_total_mib", "power_w", "temperature_c")
            found[parts[1]] = {name: float(value) for name, value in zip(names, parts[3:], strict=True) if _is_number(value)}
        return found


def step_gpus(env: Mapping[str, str]) -> tuple[str, ...]:
    """Of the node that this step of a job is on. What Slurm says of the job's GPUs was carried here from the first node."""
    devices = env.get("CUDA_VISIBLE_DEVICES") or env.get("SLURM_STEP_GPUS") or env.get("SGE_HGR_gpu") or ""
    return tuple(part for part in re.split(r"[,\s]+", devices) if part and part != "NoDevFiles")


def _figures(nvml: Any, handle: Any) -> dict[str, float]:
    figures: dict[str, float] = {}
    readers: dict[str, Callable[[], float]] = {
        "percent": lambda: float(nvml.nvmlDeviceGetUtilizationRates(handle).gpu),
        "mem_used_mib": lambda: float(nvml.nvmlDeviceGetMemoryInfo(handle).used >> 20),
        "mem_total_mib": lambda: float(nvml.nvmlDeviceGetMemoryInfo(handle).total >> 20),
        "power_w": lambda: float(nvml.nvmlDeviceGetPowerUsage(handle)) / 1000,
        "temperature_c": lambda: float(nvml.nvmlDeviceGetTemperature(handle, nvml.NVML_TEMPERATURE_GPU)),
    }
    for name, read in readers.items():
        try:
            figures[name] = read()
        except nvml.NVMLError:
            continue  # this card does not tell
    return figures


def _text(value: str | bytes) -> str:
    return value.decode() if isinstance(value, bytes) else value


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
