/** A part of a log as it is read: whole lines, each with the byte it begins at. */
import { address, loginNeeded, problemOf } from "../../../api";

export type LogLine = {
  /** The byte that it begins at: its name, in the address too. */
  at: number;
  /** The byte after it, its end of line included. */
  end: number;
  text: string;
  /** It has its end of line; else more of it may come. */
  whole: boolean;
};
export type Piece = { start: number; end: number; size: number; lines: LogLine[] };
export type Source = { run: string; leg: number; stream: string };

const NEWLINE = 10;

/** The lines of some bytes of a log, which begin at `start`. Pure. */
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

/** The whole lines of about these bytes; a negative offset counts from the end. */
export async function readPiece(from: Source, offset: number, limit: number, signal: AbortSignal): Promise<Piece> {
  const path = { run_id: from.run, leg: from.leg, stream: from.stream };
  const answer = await fetch(
    address("/api/v1/runs/{run_id}/logs/{leg}/{stream}/lines", { path, query: { offset, limit } }),
    { credentials: "same-origin", signal },
  );
  if (answer.status === 401) loginNeeded.value = true;
  if (!answer.ok) throw await problemOf(answer);
  const number = (name: string) => Number(answer.headers.get(name) ?? 0);
  const data = new Uint8Array(await answer.arrayBuffer());
  const start = number("x-offset");
  return { start, end: start + data.length, size: number("x-size"), lines: linesOf(data, start) };
}
