/** Bytes of a log as lines. Pure. */

export type LogLine = {
  /** The byte that it begins at: its name, in the address too. */
  at: number;
  /** The byte after it, its end of line included. */
  end: number;
  text: string;
  /** It has its end of line; else more of it may come. */
  whole: boolean;
};

const NEWLINE = 10;

/** The lines of some bytes of a log, which begin at `start`. */
export function linesOf(data: Uint8Array, start: number): LogLine[] {
  const decoder = new TextDecoder();
  const lines: LogLine[] = [];
  for (let from = 0; from < data.length; ) {
    const found = data.indexOf(NEWLINE, from);
    const to = found < 0 ? data.length : found;
    const end = found < 0 ? data.length : found + 1;
    lines.push({
      at: start + from,
      end: start + end,
      text: decoder.decode(data.subarray(from, to)),
      whole: found >= 0,
    });
    from = end;
  }
  return lines;
}
