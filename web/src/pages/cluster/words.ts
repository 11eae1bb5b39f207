/** A cluster's picture, and the words and shares that the page draws from it: pure. */
import type { Got } from "../../api";
import { bytes, duration, NONE } from "../../format";

export type Picture = Got<"/api/v1/clusters/{name}">;
export type Node = Picture["nodes"][number];
export type Queue = Picture["queues"][number];
export type Job = Picture["jobs"][number];
export type Opening = Picture["openings"][number];
export type Gpus = Node["gpus"][number];

const MIB = 1 << 20;

export function memory(mib: number | null | undefined): string {
  return mib === null || mib === undefined ? NONE : bytes(mib * MIB);
}

export function many(count: number, what: string): string {
  return `${count} ${what}${count === 1 ? "" : "s"}`;
}

/** How much of a node is handed out, 0 to 1: of its GPUs where it has some, for those run out first. */
export function shareOf(node: Node): number {
  const total = sum(node.gpus, "total");
  const gpus = total ? sum(node.gpus, "used") / total : 0;
  return Math.min(1, Math.max(gpus, node.cpus ? node.cpus_used / node.cpus : 0));
}

/** Nothing more can start on it that needs what it is there for: its GPUs, or its CPUs. */
export function isSpent(node: Node): boolean {
  return node.state === "full" || (takesJobs(node) && shareOf(node) === 1);
}

export function takesJobs(node: Node): boolean {
  return node.state === "free" || node.state === "partly" || node.state === "full";
}

/** What a node is made of; nodes that are alike stand together. */
export function make(node: Node): string {
  const gpus = node.gpus.map(({ total, type }) => `${total} ${type || (total === 1 ? "GPU" : "GPUs")}`);
  return [...gpus, many(node.cpus, "CPU"), ...(node.mem ? [memory(node.mem)] : [])].join(" · ");
}

/** The makes, those with most GPUs first; nodes by name within. */
export function byMake(nodes: readonly Node[]): { name: string; nodes: Node[] }[] {
  const found = new Map<string, Node[]>();
  for (const node of nodes) found.set(make(node), [...(found.get(make(node)) ?? []), node]);
  const rank = ([one]: Node[]) => (one ? sum(one.gpus, "total") * 1e6 + one.cpus : 0);
  return [...found]
    .map(([name, some]) => ({ name, nodes: some.sort((a, b) => natural(a.name, b.name)) }))
    .sort((a, b) => rank(b.nodes) - rank(a.nodes));
}

/** A node in a line, for a tooltip and for those who hear the page. */
export function said(node: Node): string {
  const parts = [`${node.name}: ${node.state}`, `${node.cpus_used} of ${many(node.cpus, "CPU")} in use`];
  for (const { type, used, total } of node.gpus) parts.push(`${used} of ${total} ${type || "GPUs"} in use`);
  if (node.mem) parts.push(`${memory(node.mem_used)} of ${memory(node.mem)}`);
  return parts.join(", ") + (node.why ? ` – ${node.why}` : "");
}

/** What a job asks for: 3 nodes, 12 CPUs, 8 GiB, 2 a100. */
export function asks({ asked }: Job): string {
  return [
    ...(asked.nodes > 1 ? [many(asked.nodes, "node")] : []),
    many(asked.cpus, "CPU"),
    ...(asked.mem ? [memory(asked.mem)] : []),
    ...asked.gpus.map(({ total, type }) => `${total} ${type || "GPU"}`),
  ].join(", ");
}

/** An opening: 2 nodes with 16 CPUs, 64 GiB, 2 a100 each. */
export function offers(one: Opening): string {
  const gpus = one.gpus ? [`${one.gpus} ${one.gpu_type || (one.gpus === 1 ? "GPU" : "GPUs")}`] : [];
  const parts = [...gpus, many(one.cpus, "CPU"), ...(one.mem ? [memory(one.mem)] : [])].join(", ");
  return one.nodes === 1 ? parts : `${many(one.nodes, "node")} with ${parts} each`;
}

export function limitOf(queue: Queue): string {
  return queue.time_limit === null ? "no limit" : duration(queue.time_limit);
}

/** Jobs of a queue, on a node, and with these words in their id, name, user or reason. */
export function chosen(jobs: readonly Job[], by: { queue: string; node: string; words: string }): Job[] {
  const words = by.words.toLowerCase().split(/\s+/).filter(Boolean);
  return jobs.filter((job) => {
    if (by.queue && !job.queue.split(",").includes(by.queue)) return false;
    if (by.node && !job.nodes.includes(by.node)) return false;
    const text = `${job.id} ${job.name} ${job.user} ${job.state} ${job.reason} ${job.native}`.toLowerCase();
    return words.every((word) => text.includes(word));
  });
}

/** node2 before node10. */
export function natural(one: string, other: string): number {
  return one.localeCompare(other, "en", { numeric: true });
}

function sum(gpus: readonly Gpus[], key: "total" | "used"): number {
  return gpus.reduce((all, gpu) => all + gpu[key], 0);
}

/** The run that a job of this name is a leg of: Onward names jobs `RUN.LEG.TOKEN`. */
export function runOf(name: string): string | null {
  return /^(.+)\.\d+\.[0-9a-f]{8}$/.exec(name)?.[1] ?? null;
}
