/** Rules and channels in words. */
import type { Got } from "../../api";
import { duration, percent } from "../../format";

export type Rule = Got<"/api/v1/alerts/rules">["rules"][number];
export type Channel = Got<"/api/v1/alerts/channels">["channels"][number];
export type Notice = Got<"/api/v1/alerts/history">["notices"][number];
export type Kind = Rule["kind"];

type Told = { kind: Kind; name: string; when: string; after?: { label: string; usual: number; share?: true } };

/** In the order in which people want them. */
export const KINDS: readonly Told[] = [
  { kind: "failed", name: "A run failed", when: "fails" },
  { kind: "finished", name: "A run finished", when: "finishes" },
  {
    kind: "started",
    name: "A run started after a wait",
    when: "starts after waiting",
    after: { label: "Waited at least (minutes)", usual: 600 },
  },
  {
    kind: "stalled",
    name: "A run shows no progress",
    when: "has logged nothing for",
    after: { label: "Silent for (minutes)", usual: 1800 },
  },
  {
    kind: "checkpoint_overdue",
    name: "A checkpoint is overdue",
    when: "has saved no checkpoint for",
    after: { label: "Without a checkpoint for (minutes)", usual: 7200 },
  },
  { kind: "nan", name: "A metric is NaN or infinite", when: "logs NaN or infinity" },
  { kind: "metric", name: "A condition is met", when: "meets" },
  { kind: "told", name: "The training calls run.alert()", when: "calls run.alert()" },
  {
    kind: "quota",
    name: "The disk is nearly full",
    when: "disk usage of the runs folder reaches",
    after: { label: "Used (percent)", usual: 0.9, share: true },
  },
];

export function told(kind: Kind): Told {
  return KINDS.find((one) => one.kind === kind) ?? { kind, name: kind, when: kind };
}

export function sentence(rule: Rule): string {
  const { when, after } = told(rule.kind);
  if (after?.share) return `${when} ${percent(rule.limit)}`;
  return after ? `a run ${when} ${duration(rule.limit)}` : `a run ${when}`;
}

/** As the form shows `after`, and back: minutes, or percent. */
export function shownAfter(kind: Kind, value: number | null): string {
  const { after } = told(kind);
  if (!after) return "";
  const number = value ?? after.usual;
  return String(Number((after.share ? number * 100 : number / 60).toPrecision(6)));
}

export function readAfter(kind: Kind, text: string): number | null {
  const { after } = told(kind);
  const number = Number(text);
  if (!after || text.trim() === "" || !Number.isFinite(number)) return null;
  return after.share ? number / 100 : number * 60;
}

export function target(channel: Channel): string {
  const { to, host } = channel.target as { to?: string[]; host?: string };
  return to ? `${to.join(", ")} through ${host}` : (host ?? "");
}

export function outcome(notice: Notice): { words: string; style: "good" | "bad" | "muted" } {
  if (notice.sent !== null) return { words: "sent", style: "good" };
  if (notice.due === null) return { words: `failed: ${notice.error}`, style: "bad" };
  return notice.error
    ? { words: `tried ${notice.tries}×: ${notice.error}`, style: "bad" }
    : { words: "pending", style: "muted" };
}
