/** The runs that a list shows, read a page at a time as they come into view; grouped or not, and kept current.
 *
 * What is known stays: a changed run is changed where it stands, and new runs are counted but not put in, unless asked. */
import { signal } from "@preact/signals";
import { type Got, get, inWords, post } from "../../api";
import { all, groupFilter, groupKey, inQuotes } from "./terms";

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
  /** The runs of a pipeline are one line. */
  fold: boolean;
};
export type Part = {
  value: string | null;
  /** What its runs have in common; empty: nothing. */
  filter: string;
  count: number;
  states: Readonly<Record<string, number>>;
  open: boolean;
  header: boolean;
  pages: Map<number, readonly Row[]>;
  /** Opened pipelines, by the index of their line, in order. */
  inner: Map<number, Part>;
  /** It is an opened pipeline's. */
  within: boolean;
};
export type Folded = { row: Row; pipeline: Pipeline; states: Readonly<Record<string, number>> };
export type Line =
  | { kind: "group"; part: Part }
  | ({ kind: "pipeline"; part: Part; index: number; open: boolean; own: Own | null } & Folded)
  | { kind: "run"; row: Row | null; part: Part; index: number };
/** What a pipeline says of itself. */
export type Own = Got<"/api/v1/pipelines">["pipelines"][number];
type Pipeline = NonNullable<Row["pipeline"]>;

export const PAGE = 100;
const MOST_REFRESHED = 150;
const QUIET = 240; // s
const LONGEST = 15_000; // letters of a filter
const OVER = ["finished", "failed", "cancelled"];

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
  private readonly own = new Map<string, Own>();
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

  /** Whether any of the runs that were read is a pipeline's. */
  get pipelines(): boolean {
    return this.read().some(({ pipeline }) => pipeline !== null);
  }

  get lines(): number {
    return this.parts.reduce((sum, part) => sum + (part.header ? 1 : 0) + (part.open ? within(part) : 0), 0);
  }

  /** Reads what is needed first: how many there are in each state, and the groups or the first page. */
  async start(): Promise<void> {
    try {
      const counting = this.count();
      if (this.query.filter.trim()) await counting; // which says whether it is a filter or words
      if (this.query.group) await this.readGroups();
      else {
        const part = partOf({ filter: "", open: true });
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
    this.parts = got.groups.map(({ value, runs, states }) =>
      partOf({
        value,
        filter: groupFilter(group, value),
        count: runs,
        states,
        open: this.opened.has(groupKey(value)),
        header: true,
      }),
    );
    this.readAt.value = Date.now() / 1000;
  }

  toggle(line: Line): void {
    if (line.kind === "group") line.part.open = !line.part.open;
    if (line.kind === "pipeline")
      line.open ? line.part.inner.delete(line.index) : this.open(line.part, line.index, line);
    this.changed();
  }

  /** Have a pipeline's runs below its line. */
  private open(part: Part, index: number, { pipeline, states }: Pick<Folded, "pipeline" | "states">): void {
    const filter = groupFilter("pipeline", pipeline.folder);
    const count = Object.values(states).reduce((sum, runs) => sum + runs, 0);
    part.inner.set(index, partOf({ value: pipeline.id, filter, count, open: true, within: true }));
    part.inner = new Map([...part.inner].sort(([one], [other]) => one - other));
  }

  /** Groups and pipelines that are open, as the address holds them. */
  openKeys(): string[] {
    const groups = this.parts.filter(({ header, open }) => header && open).map(({ value }) => groupKey(value));
    return [...groups, ...this.parts.flatMap(({ inner }) => [...inner.values()].map(({ value }) => `@${value}`))];
  }

  /** The runs that were read and have a line of their own. */
  ids(): string[] {
    return this.read().flatMap((row) => (row.pipeline?.states ? [] : [row.id]));
  }

  private read(): Row[] {
    const open = this.parts.filter((part) => part.open).flatMap((part) => [part, ...part.inner.values()]);
    return open.flatMap(({ pages }) => [...pages.values()].flat());
  }

  /** Lines that stand for pipelines. */
  private folded(): Folded[] {
    return this.read().flatMap(foldedOf);
  }

  line(number: number): Line | null {
    let left = number;
    for (const part of this.parts) {
      if (part.header) {
        if (left === 0) return { kind: "group", part };
        left -= 1;
      }
      if (!part.open) continue;
      if (left < within(part)) return this.lineIn(part, left);
      left -= within(part);
    }
    return null;
  }

  private lineIn(part: Part, number: number): Line {
    let above = 0; // lines of opened pipelines
    for (const [index, inner] of part.inner) {
      const from = number - above - index - 1;
      if (from < 0) break;
      if (from < inner.count) return this.lineAt(inner, from);
      above += inner.count;
    }
    return this.lineAt(part, number - above);
  }

  private lineAt(part: Part, index: number): Line {
    const row = part.pages.get(Math.floor(index / PAGE))?.[index % PAGE] ?? null;
    const [folded] = row ? foldedOf(row) : [];
    if (!folded) return { kind: "run", row, part, index };
    const own = this.own.get(folded.pipeline.folder) ?? null;
    return { kind: "pipeline", part, index, open: part.inner.has(index), own, ...folded };
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
      number += Math.min(PAGE - (line.index % PAGE), part.count - line.index) - 1;
    }
  }

  private readPage(part: Part, page: number): Promise<void> {
    const key = `${part.filter}/${page}`;
    const before = this.asking.get(key);
    if (before) return before;
    const asked = this.ask(part, page).finally(() => this.asking.delete(key));
    this.asking.set(key, asked);
    return asked;
  }

  private async ask(part: Part, page: number): Promise<void> {
    const { filter, order, archived, metrics, state, fold } = this.query;
    const words = this.readAs === "text";
    const terms = [words ? "" : filter, state && `state = ${state}`, part.filter];
    const got = await post("/api/v1/runs/search", {
      body: {
        text: words ? filter : "",
        filter: all(terms),
        order: [order],
        archived,
        limit: PAGE,
        offset: page * PAGE,
        count: page === 0,
        fold: fold && !part.within,
        metrics: metrics.length ? metrics : false,
      },
      signal: this.left.signal,
    });
    part.pages.set(page, got.runs);
    for (const row of got.runs) this.at.set(row.id, { part, page });
    got.runs.forEach((row, at) => {
      for (const folded of foldedOf(row))
        if (this.opened.has(`@${folded.pipeline.id}`)) this.open(part, page * PAGE + at, folded);
    });
    void this.readOwn(got.runs.flatMap(foldedOf));
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
      const kept = ({ pipeline }: Row) => (pipeline?.states ? { ...row, pipeline } : row); // it still stands for all
      if (place && page)
        place.part.pages.set(
          place.page,
          page.map((one) => (one.id === row.id ? kept(one) : one)),
        );
    }
    this.readAt.value = Date.now() / 1000;
    this.changed();
  }

  /** How pipelines stand by their own account. They are not waited for: their folders may be slow. */
  private async readOwn(lines: readonly Folded[]): Promise<void> {
    const name = lines.slice(0, MOST_REFRESHED).map(({ pipeline }) => pipeline.id);
    if (!name.length) return;
    try {
      const got = await get("/api/v1/pipelines", { query: { name }, signal: this.left.signal });
      for (const own of got.pipelines) this.own.set(own.folder, own);
      this.changed();
    } catch {
      // then the states of their runs must do
    }
  }

  /** Count the runs of pipelines anew that are not over. */
  private async lookAtPipelines(): Promise<void> {
    const going = this.folded().filter(({ pipeline, states }) => {
      const own = this.own.get(pipeline.folder);
      return own ? !OVER.includes(own.state) : Object.keys(states).some((state) => !OVER.includes(state));
    });
    const some: Folded[] = [];
    let long = 0;
    for (const one of going) {
      long += one.pipeline.folder.length + 8;
      if (long < LONGEST && some.length < MOST_REFRESHED) some.push(one);
    }
    if (!some.length) return;
    const filter = `pipeline in (${some.map(({ pipeline }) => inQuotes(pipeline.folder)).join(", ")})`;
    const got = await post("/api/v1/runs/search", {
      body: { filter, archived: this.query.archived, fold: true, limit: some.length, metrics: false, params: false },
      signal: this.left.signal,
    });
    const states = new Map(got.runs.map(({ pipeline }) => [pipeline?.folder, pipeline?.states]));
    for (const { row, pipeline } of some) {
      const { part, page } = this.at.get(row.id) ?? {};
      const now = states.get(pipeline.folder);
      const rows = page === undefined ? undefined : part?.pages.get(page);
      if (!now || !rows || page === undefined) continue;
      part?.pages.set(
        page,
        rows.map((one) => (one.id === row.id ? { ...one, pipeline: { ...pipeline, states: now } } : one)),
      );
    }
    await this.readOwn(some);
  }

  knows(id: string): boolean {
    return this.at.has(id);
  }

  /** Running ones of which nothing was heard for a while: no event will tell that it has become too long. */
  quiet(): Set<string> {
    const long = Date.now() / 1000 - QUIET;
    return new Set(
      this.read().flatMap(({ id, state, updated }) => (state === "running" && updated < long ? [id] : [])),
    );
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
    const folded = new Set(this.folded().map(({ pipeline }) => pipeline.folder));
    this.fresh.value = got.runs.filter(
      ({ id, pipeline }) => !this.at.has(id) && !folded.has(pipeline?.folder ?? ""),
    ).length;
    await this.lookAtPipelines();
    await this.count();
    this.changed();
  }

  changed(): void {
    this.version.value += 1;
  }
}

function partOf(given: Partial<Part>): Part {
  const none = { value: null, filter: "", count: 0, states: {}, open: false, header: false, within: false };
  return { ...none, pages: new Map(), inner: new Map(), ...given };
}

/** Lines of a part that is open. */
function within(part: Part): number {
  return [...part.inner.values()].reduce((sum, { count }) => sum + count, part.count);
}

/** What a row stands for, where it stands for a pipeline. */
function foldedOf(row: Row): Folded[] {
  const { pipeline } = row;
  return pipeline?.states ? [{ row, pipeline, states: pipeline.states }] : [];
}
