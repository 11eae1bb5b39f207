/** An open log, of which only the part around what is looked at is held: it grows at the end that is neared, and lets go of the other. */
import type { LogLine } from "./lines";
import type { Piece } from "./piece";

export type Read = (offset: number, limit: number, signal: AbortSignal) => Promise<Piece>;

const PIECE = 1 << 16; // bytes
const MOST = 2500; // lines that are held

export class Book {
  lines: readonly LogLine[] = [];
  size = 0;
  /** Nothing was read yet. */
  fresh = true;
  fault: unknown = null;
  private busy: "" | "up" | "down" | "open" = "";
  private gone = new AbortController();

  constructor(
    private readonly read: Read,
    private readonly changed: () => void,
  ) {}

  get start(): number {
    return this.lines[0]?.at ?? 0;
  }

  /** Up to where lines are held. */
  get end(): number {
    return this.lines.at(-1)?.end ?? 0;
  }

  get atEnd(): boolean {
    return this.end >= this.size;
  }

  close(): void {
    this.gone.abort();
  }

  /** Look at the lines around a byte, or (null) at the last ones. */
  async open(at: number | null): Promise<void> {
    this.gone.abort();
    this.gone = new AbortController();
    this.busy = "";
    await this.do("open", async (signal) => {
      const whole = at === null ? await this.read(-PIECE, PIECE, signal) : await this.around(at, signal);
      this.size = whole.size;
      this.lines = at === null ? whole.lines.slice(-MOST) : cutAround(whole.lines, at);
    });
  }

  private async around(at: number, signal: AbortSignal): Promise<Piece> {
    const offset = Math.max(0, at - PIECE / 2);
    const found = await this.read(offset, PIECE, signal);
    const past = found.lines.length === 0 && found.size > 0;
    return past ? await this.read(-PIECE, PIECE, signal) : found;
  }

  /** Hold more on one side. */
  async more(way: "up" | "down"): Promise<void> {
    if (this.busy || this.fresh || (way === "up" ? this.start === 0 : this.atEnd)) return;
    await this.do(way, async (signal) => {
      if (way === "up") {
        const offset = Math.max(0, this.start - PIECE);
        const found = await this.read(offset, this.start - offset, signal);
        this.size = found.size;
        this.lines = [...found.lines.slice(-MOST / 2), ...this.lines].slice(0, MOST);
      } else this.append(await this.read(this.whole, PIECE, signal));
    });
  }

  /** What was written since, where the end is held. */
  async grow(): Promise<void> {
    if (this.busy || this.fresh) return;
    const held = this.atEnd;
    await this.do("down", async (signal) => {
      const found = await this.read(held ? this.whole : this.size, held ? PIECE : 1, signal);
      if (found.size < this.end)
        this.lines = (await this.read(-PIECE, PIECE, signal)).lines; // written anew
      else if (held) this.append(found);
      this.size = found.size;
    });
  }

  /** Where what is not whole yet begins: it is read again with what came. */
  private get whole(): number {
    const last = this.lines.at(-1);
    return last && !last.whole ? last.at : this.end;
  }

  private append(found: Piece): void {
    const kept = this.lines.at(-1)?.whole === false ? this.lines.slice(0, -1) : this.lines;
    const same = found.lines.length === 1 && this.lines.at(-1)?.end === found.end;
    this.size = found.size;
    if (found.lines.length && !same) this.lines = [...kept, ...found.lines.slice(0, MOST / 2)].slice(-MOST);
  }

  private async do(what: "up" | "down" | "open", act: (signal: AbortSignal) => Promise<void>): Promise<void> {
    const { signal } = this.gone;
    const before = { lines: this.lines, size: this.size, fault: this.fault };
    this.busy = what;
    try {
      await act(signal);
      this.fault = null;
      this.fresh = false;
    } catch (error) {
      if (signal.aborted) return;
      this.fault = error;
    }
    if (signal.aborted) return;
    this.busy = "";
    const same = before.lines === this.lines && before.size === this.size && before.fault === this.fault;
    if (!same || what === "open") this.changed();
  }
}

function cutAround(lines: readonly LogLine[], at: number): readonly LogLine[] {
  if (lines.length <= MOST) return lines;
  const middle = lines.findIndex(({ end }) => end > at);
  const from = Math.max(0, middle - MOST / 2);
  return lines.slice(from, from + MOST);
}
