/** The columns that the list of runs can have: how each is called, sorted on the server, and how wide it is unless told. */
import { type Codec, list } from "../../url";

export type Column = {
  id: string;
  title: string;
  /** What the server sorts by; none: it cannot. */
  order?: string;
  /** The first click sorts downward. */
  down?: boolean;
  width: number;
  right?: boolean;
  about: string;
};

export const FIXED: readonly Column[] = [
  { id: "name", title: "Name", order: "name", width: 168, about: "The run's name" },
  {
    id: "state",
    title: "State",
    order: "state",
    width: 108,
    about: "Submitted, running, waiting, finished, failed or cancelled",
  },
  { id: "why", title: "Why", width: 220, about: "Why it is in this state, in one sentence" },
  { id: "progress", title: "Progress", order: "step", down: true, width: 116, about: "Steps done, of the total" },
  { id: "spark", title: "Curve", width: 108, about: "A small curve of the chosen metric" },
  { id: "legs", title: "Legs", order: "leg", down: true, width: 52, right: true, about: "Legs so far, of the maximum" },
  { id: "checkpoint", title: "Checkpoint", width: 88, right: true, about: "Age of the newest checkpoint" },
  { id: "gpu", title: "GPU", width: 56, right: true, about: "Use of its GPUs over the last minutes" },
  {
    id: "queue",
    title: "Queued",
    width: 72,
    right: true,
    about: "How long the newest leg waited in the queue, so far",
  },
  { id: "tags", title: "Tags", width: 112, about: "Its tags" },
  { id: "experiment", title: "Experiment", order: "experiment", width: 140, about: "The experiment it belongs to" },
  {
    id: "created",
    title: "Created",
    order: "created",
    down: true,
    width: 112,
    right: true,
    about: "When it was submitted or first seen",
  },
  {
    id: "started",
    title: "Started",
    order: "started",
    down: true,
    width: 104,
    right: true,
    about: "When its first leg started",
  },
  { id: "ended", title: "Ended", order: "ended", down: true, width: 104, right: true, about: "When it ended" },
  {
    id: "duration",
    title: "Duration",
    order: "duration",
    down: true,
    width: 96,
    right: true,
    about: "From its start to its end, or until now",
  },
  { id: "user", title: "User", order: "user", width: 96, about: "Who submitted it" },
  { id: "cluster", title: "Cluster", order: "cluster", width: 96, about: "The cluster it runs on" },
  { id: "id", title: "Id", order: "id", width: 104, about: "The run's id" },
];

export const USUAL: readonly string[] = [
  "name",
  "state",
  "why",
  "progress",
  "spark",
  "legs",
  "checkpoint",
  "gpu",
  "queue",
  "tags",
  "created",
];

const IDS = list(USUAL);
const NARROWEST = 48;
const WIDEST = 1200;

/** A column by its id; `metrics.loss`, `params.lr` and `tags.team` are columns too. */
export function columnOf(id: string): Column | null {
  const fixed = FIXED.find((column) => column.id === id);
  if (fixed) return fixed;
  const room = /^(metrics|params|tags)\.(.+)$/s.exec(id);
  if (!room?.[2]) return null;
  const numbers = room[1] !== "tags";
  const about = { metrics: "Last value of a metric", params: "A param", tags: "A tag" }[
    room[1] as "metrics" | "params" | "tags"
  ];
  return {
    id,
    title: room[2],
    order: `${room[1]}.${quoted(room[2])}`,
    width: 110,
    right: numbers,
    about,
    down: room[1] === "metrics",
  };
}

/** A key as the filter language reads it. */
export function quoted(key: string): string {
  if (/^[\w/:@-]+(\.[\w/:@-]+)*$/.test(key)) return key;
  return key.includes('"') ? `\`${key}\`` : `"${key}"`;
}

export type Chosen = { id: string; width: number };

/** In the address: ids in their order, with a width where one was set: `name@240,state,metrics.loss`. */
export const chosenColumns: Codec<readonly Chosen[]> = {
  read: (text) => {
    const given = IDS.read(text).flatMap((part) => {
      const [, id = "", width] = /^(.*?)(?:@(\d+))?$/s.exec(part) ?? [];
      const column = columnOf(id);
      return column ? [{ id, width: width ? bounded(Number(width)) : column.width }] : [];
    });
    const once = given.filter((one, at) => given.findIndex((other) => other.id === one.id) === at);
    return once.some((one) => one.id === "name")
      ? once
      : [{ id: "name", width: columnOf("name")?.width ?? 200 }, ...once];
  },
  write: (value) =>
    IDS.write(value.map(({ id, width }) => (width === columnOf(id)?.width ? id : `${id}@${Math.round(width)}`))),
};

export function bounded(width: number): number {
  return Math.max(NARROWEST, Math.min(WIDEST, width));
}

/** In the address: `-created` is newest first. */
export type Sort = { id: string; down: boolean };
export const sortCodec: Codec<Sort> = {
  read: (text) => {
    const given = text ?? "-created";
    const id = given.replace(/^-/, "");
    return columnOf(id)?.order ? { id, down: given.startsWith("-") } : { id: "created", down: true };
  },
  write: ({ id, down }) => (id === "created" && down ? null : (down ? "-" : "") + id),
};

/** What the server is asked to sort by. */
export function orderOf({ id, down }: Sort): string {
  return `${columnOf(id)?.order ?? "created"} ${down ? "desc" : "asc"}`;
}

/** The metrics whose last values must come with the rows. */
export function metricsOf(columns: readonly Chosen[]): string[] {
  return columns.flatMap(({ id }) => (id.startsWith("metrics.") ? [id.slice("metrics.".length)] : [])).sort();
}
