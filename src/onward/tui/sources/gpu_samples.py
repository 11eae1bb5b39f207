"""The GPUs of a run as its samples tell of them."""

from __future__ import annotations

from onward.tracker.series.stitch import SYSTEM_PREFIX
from onward.tui.sources.interface import GpuReading
from onward.tui.sources.spool_metrics import SpoolMetrics

_HISTORY = 120  # samples


def gpus_of(metrics: SpoolMetrics, node: str) -> tuple[GpuReading, ...]:
    """`node`: where the leg's supervisor is, whose samples name none."""
    found: dict[tuple[str, str], dict[str, str]] = {}
    for key in metrics.keys():  # noqa: SIM118 – not a dict
        place = gpu_key(key)
        if place:
            found.setdefault((place[0] or node, place[1]), {})[place[2]] = key
    return tuple(_gpu(metrics, node, uuid, keys) for (node, uuid), keys in sorted(found.items()))


def gpu_key(key: str) -> tuple[str, str, str] | None:
    """Node (empty: the supervisor's), UUID and figure, of a key such as system/node/n2/gpu/GPU-5a…/percent."""
    if not key.startswith(SYSTEM_PREFIX):
        return None
    rest, node = key.removeprefix(SYSTEM_PREFIX), ""
    if rest.startswith("node/") and rest.count("/") >= 2:
        _, node, rest = rest.split("/", 2)
    if not rest.startswith("gpu/") or rest.count("/") < 2:
        return None
    _, uuid, figure = rest.split("/", 2)
    return node, uuid, figure


def _gpu(metrics: SpoolMetrics, node: str, uuid: str, keys: dict[str, str]) -> GpuReading:
    def last(figure: str) -> float | None:
        return metrics.last(keys[figure]) if figure in keys else None

    return GpuReading(
        node=node,
        uuid=uuid,
        percent=last("percent"),
        mem_used=last("mem_used_mib"),
        mem_total=last("mem_total_mib"),
        power=last("power_w"),
        temperature=last("temperature_c"),
        history=metrics.history(keys["percent"], _HISTORY) if "percent" in keys else (),
    )
