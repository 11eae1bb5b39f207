/** The runs that a list shows, read a page at a time as they come into view; grouped or not, and kept current.
 *
 * What is known stays: a changed run is changed where it stands, and new runs are counted but not put in, unless asked. */
import { signal } from "@preact/signals";
import { type Got, get, inWords, post } from "../../api";
import { quoted } from "./columns";

export type Row = Got<"/api/v1/runs">["runs"][number];
export type Query = {
  filter: string;
  order: string;
  /** `state`, `experiment`, `params.lr` or `tags.team`; empty: not grouped. */
  group: string;
  /** One state alone; empty: all. */
  state: string;
  archived: boolean;
  metrics: readonly string[];
};
export type Part = {
  value: string | null;
  count: number;
  states: Readonly<Record<string, number>>;
  open: boolean;
  header: boolean;
  pages: Map<number, readonly Row[]>;
};
export type Line = { kind: "group"; part: Part } | { kind: "run"; row: Row | null; part: Part; index: number };

export const PAGE = 100;
const MOST_REFRESHED = 150;

export class Rows {
  /** Moves on whenever something to show has changed. */
  readonly version = signal(0);
  readonly fault = signal<{ what: string; next: string } | null>(null);
  /** How many runs came since, and are not in the list yet. */
  readonly fresh = signal(0);
  /** When it was last read, unix seconds. */
  readonly readAt = signal<number | null>(null);
  parts: Part[] = [];
  /** How many runs there are in each state. */
  states: Readonly<Record<string, number>> = {};
  readAs: "filter" | "text" = "filter";
  note = "";
  moreGroups = false;
  private readonly asking = new Map<string, Promise<void>>();
  private readonly at = new Map<string, { part: Part; page: number }>();
  private readonly left = new AbortController();
  private readonly began = Date.now() / 1000 - 5; // clocks differ a little

  constructor(
    readonly query: Query,
    private readonly opened: ReadonlySet<string>,
  ) {}

  get total(): number {
    return this.parts.reduce((sum, part) => sum + part.count, 0);
  }

  get lines(): number {
    return this.parts.reduce((sum, part) => sum + (part.header ? 1 : 0) + (part.open ? part.count : 0), 0);
  }

  /** Reads what is needed first: how many there are in each state, and the groups or the first page. */
  async start(): Promise<void> {
    try {
      const counting = this.count();
      if (this.query.filter.trim()) await counting; // which says whether it is a filter or words
      if (this.query.group) await this.readGroups();
      else {
        const part: Part = { value: null, count: 0, states: {}, open: true, header: false, pages: new Map() };
        await this.readPage(part, 0);
        this.parts = [part];
      }
      await counting;
    } catch (error) {
      this.fault.value = inWords(error);
    }
    this.changed();
  }

  stop(): void {
    this.left.abort();
  }

  /** The runs of each state, whichever is shown. */
  private async count(): Promise<void> {
    const { filter, archived } = this.query;
    const got = await get("/api/v1/run-groups", { query: { by: "state", filter, archived }, signal: this.left.signal });
    this.readAs = got.read_as;
    this.note = got.note;
    this.states = Object.fromEntries(got.groups.map(({ value, runs }) => [value ?? "", runs]));
  }

  private async readGroups(): Promise<void> {
    const { filter, group, archived, state } = this.query;
    const asked = { by: group, filter, archived, state: state || null };
    const got = await get("/api/v1/run-groups", { query: asked, signal: this.left.signal });
    this.moreGroups = got.more;
    this.parts = got.groups.map(({ value, runs, states }) => ({
      value,
      count: runs,
      states,
      open: this.opened.has(groupKey(value)),
      header: true,
      pages: new Map(),
    }));
    this.readAt.value = Date.now() / 1000;
  }

  toggle(part: Part): void {
    part.open = !part.open;
    this.changed();
  }

  line(number: number): Line | null {
    let left = number;
    for (const part of this.parts) {
      if (part.header) {
        if (left === 0) return { kind: "group", part };
        left -= 1;
      }
      if (!part.open) continue;
      if (left < part.count) {
        const row = part.pages.get(Math.floor(left / PAGE))?.[left % PAGE] ?? null;
        return { kind: "run", row, part, index: left };
      }
      left -= part.count;
    }
    return null;
  }

  /** Have the lines from `first` to `last` read, where they are not yet. */
  want(first: number, last: number): void {
    for (let number = first; number <= last; number++) {
      const line = this.line(number);
      if (line?.kind !== "run" || line.row) continue;
      const { part } = line;
      const page = Math.floor(line.index / PAGE);
      this.readPage(part, page)
        .then(() => this.changed())
        .catch((error: unknown) => {
          this.fault.value = inWords(error);
        });
      number += PAGE - (line.index % PAGE) - 1;
    }
  }

  private readPage(part: Part, page: number): Promise<void> {
    const key = `${this.parts.indexOf(part)}/${page}`;
    const before = this.asking.get(key);
    if (before) return before;
    const asked = this.ask(part, page).finally(() => this.asking.delete(key));
    this.asking.set(key, asked);
    return asked;
  }

  private async ask(part: Part, page: number): Promise<void> {
    const { filter, order, archived, metrics, group, state } = this.query;
    const words = this.readAs === "text";
    const terms = [words ? "" : filter, state && `state = ${state}`, group && groupFilter(group, part.value)];
    const got = await post("/api/v1/runs/search", {
      body: {
        text: words ? filter : "",
        filter: all(terms),
        order: [order],
        archived,
        limit: PAGE,
        offset: page * PAGE,
        count: page === 0,
        metrics: metrics.length ? metrics : false,
      },
      signal: this.left.signal,
    });
    part.pages.set(page, got.runs);
    for (const row of got.runs) this.at.set(row.id, { part, page });
    if (got.total !== null) part.count = got.total;
    else if (got.next === null) part.count = page * PAGE + got.runs.length;
    this.readAt.value = Date.now() / 1000;
    this.fault.value = null;
  }

  /** Take in what happened to runs: those that are shown are read anew, others counted. */
  async heard(ids: ReadonlySet<string>): Promise<void> {
    const known = [...ids].filter((id) => this.at.has(id)).slice(0, MOST_REFRESHED);
    if (!known.length) return;
    const got = await post("/api/v1/runs/search", {
      body: {
        filter: `id in (${known.map((id) => `'${id}'`).join(", ")})`,
        archived: null,
        limit: known.length,
        metrics: this.query.metrics.length ? this.query.metrics : false,
      },
      signal: this.left.signal,
    });
    for (const row of got.runs) {
      const place = this.at.get(row.id);
      const page = place?.part.pages.get(place.page);
      if (place && page)
        place.part.pages.set(
          place.page,
          page.map((one) => (one.id === row.id ? row : one)),
        );
    }
    this.readAt.value = Date.now() / 1000;
    this.changed();
  }

  knows(id: string): boolean {
    return this.at.has(id);
  }

  /** A run that is shown, by its id. */
  row(id: string): Row | null {
    const place = this.at.get(id);
    return place?.part.pages.get(place.page)?.find((one) => one.id === id) ?? null;
  }

  /** Of runs that are not shown: how many would be, had the list been read now. */
  async look(): Promise<void> {
    const { filter, archived, state } = this.query;
    const words = this.readAs === "text";
    const since = `created > ${Math.floor(this.began)}`;
    const body = {
      text: words ? filter : "",
      filter: all([words ? "" : filter, state && `state = ${state}`, since]),
      archived,
    };
    const got = await post("/api/v1/runs/search", {
      body: { ...body, limit: 500, metrics: false, params: false },
      signal: this.left.signal,
    });
    this.fresh.value = got.runs.filter(({ id }) => !this.at.has(id)).length;
    await this.count();
    this.changed();
  }

  changed(): void {
    this.version.value += 1;
  }
}

/** A group's value as the address holds it. */
export function groupKey(value: string | null): string {
  return value === null ? "-" : `=${value}`;
}

export function groupFilter(by: string, value: string | null): string {
  const [, room, key] = /^(params|tags)\.(.+)$/s.exec(by) ?? [];
  const name = room && key ? `${room}.${quoted(key)}` : by;
  return value === null ? `${name} is null` : `${name} = '${value.replace(/\\/g, "\\\\").replace(/'/g, "\\'")}'`;
}

/** Several filters as one; empty ones say nothing. */
export function all(filters: readonly string[]): string {
  const said = filters.filter((one) => one.trim());
  return said.length > 1 ? said.map((one) => `(${one})`).join(" and ") : (said[0] ?? "");
}
