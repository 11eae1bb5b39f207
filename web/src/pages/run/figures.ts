/** What machines did, as charts: which figures are drawn together, and under which name. Pure. */
import type { Got } from "../../api";
import type { Drawn } from "../../charts/curve";

export type System = Got<"/api/v1/runs/{run_id}/system">;
export type MachineNode = System["nodes"][number];
type Figure = MachineNode["figures"][number];

/** One chart: its title, and a line for each figure in it. */
export type Board = { title: string; lines: { name: string; figure: Figure }[] };

/** In this order; figures that belong together share a chart. */
const HOST: readonly { title: string; names: Readonly<Record<string, string>> }[] = [
  { title: "CPU, %", names: { cpu_percent: "the job's CPUs, 100 % each" } },
  {
    title: "Memory of the job, MiB",
    names: { mem_anon_mib: "anonymous", mem_cache_mib: "page cache", rss_mib: "the training's processes" },
  },
  { title: "Memory of the node, MiB", names: { host_mem_used_mib: "used", host_mem_total_mib: "total" } },
  { title: "Load", names: { load_1m: "1 minute" } },
];
const GPU: readonly (readonly [string, string])[] = [
  ["percent", "GPU use, %"],
  ["mem_used_mib", "GPU memory, MiB"],
  ["mem_percent", "GPU memory use, %"],
  ["power_w", "GPU power, W"],
  ["temperature_c", "GPU temperature, °C"],
];

export function boardsOf(node: MachineNode): Board[] {
  const gpus = node.gpus.flatMap((gpu) => gpu.figures.map((figure) => ({ gpu: gpu.uuid, figure })));
  const kinds = [...new Set([...GPU.map(([name]) => name), ...gpus.map(({ figure }) => figure.name)])];
  const made: Board[] = kinds.map((kind) => ({
    title: GPU.find(([name]) => name === kind)?.[1] ?? `GPU ${plainName(kind)}`,
    lines: gpus
      .filter(({ figure }) => figure.name === kind)
      .map(({ gpu, figure }) => ({ name: gpuName(gpu, node), figure })),
  }));
  const known = new Set(HOST.flatMap(({ names }) => Object.keys(names)));
  for (const { title, names } of HOST) {
    const lines = Object.entries(names).flatMap(([name, words]) => {
      const figure = node.figures.find((one) => one.name === name);
      return figure ? [{ name: words, figure }] : [];
    });
    made.push({ title, lines });
  }
  for (const figure of node.figures)
    if (!known.has(figure.name))
      made.push({
        title: plainName(figure.name) + (figure.unit ? `, ${figure.unit}` : ""),
        lines: [{ name: plainName(figure.name), figure }],
      });
  return made.filter(({ lines }) => lines.some(({ figure }) => figure.times.length));
}

/** `GPU 2` on its node, and the beginning of its UUID where there are several. */
export function gpuName(uuid: string, node: MachineNode): string {
  const at = node.gpus.findIndex((gpu) => gpu.uuid === uuid);
  return `GPU ${at} (${uuid.replace(/^GPU-/, "").slice(0, 6)})`;
}

/** `disk_free_mib` is `Disk free`. */
export function plainName(name: string): string {
  const words = name.replace(/_(percent|mib|w|c|s|bytes)$/, "").replaceAll("_", " ");
  return words.charAt(0).toUpperCase() + words.slice(1);
}

export function drawnOf(name: string, figure: Figure): Drawn {
  const row = (cells: readonly (number | null)[]) => Float64Array.from(cells, (cell) => cell ?? Number.NaN);
  const mids = row(figure.means);
  const band = figure.lows.some((low, at) => low !== figure.highs[at]);
  return {
    ...{ id: name, xs: Float64Array.from(figure.times), mids, smooth: mids },
    ...{ lows: band ? row(figure.lows) : mids, highs: band ? row(figure.highs) : mids },
    ...{ points: figure.times.length, superseded: 0, exact: !band, first: 1, legs: [], band },
  };
}
