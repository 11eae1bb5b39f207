/** A part of a log as it is read: whole lines, each with the byte it begins at. */
import { address, loginNeeded, problemOf } from "../../../api";
import { type LogLine, linesOf } from "./lines";

export type Piece = { start: number; end: number; size: number; lines: LogLine[] };
export type Source = { run: string; leg: number; stream: string };

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
