/** One line of a log: its colours, and what was searched for marked in it. */
import type { VNode } from "preact";
import { plain, type Span, type Style, spans } from "./ansi";
import type { LogLine } from "./lines";

const LONGEST = 20_000; // characters of a line that are drawn
const ERROR =
  /Traceback \(most recent|\b(\w*Error|\w*Exception)\b:|\bERROR\b|\bCRITICAL\b|\bFATAL\b|Segmentation fault|ut of memory|CUDA error|oom-kill|No space left|\bKilled\b/;

export function isError(text: string): boolean {
  return ERROR.test(plain(text.slice(0, 2000)));
}

export function Row({ line, find, on }: { line: LogLine; find: string; on: boolean }): VNode {
  const text = line.text.length > LONGEST ? line.text.slice(0, LONGEST) : line.text;
  const parts = marked(spans(text), find);
  const hides = line.text.length - text.length;
  return (
    <div class={`log-line${on ? " on" : ""}${isError(text) ? " bad" : ""}`} data-at={line.at}>
      {parts.map(({ text, style, hit }, at) => {
        const look = classOf(style);
        const own = coloursOf(style);
        if (hit) return <mark key={at}>{text}</mark>;
        return look || own ? (
          <span key={at} class={look} style={own}>
            {text}
          </span>
        ) : (
          text
        );
      })}
      {hides > 0 && <small> … {hides.toLocaleString("en-US")} more characters</small>}
      {"\n"}
    </div>
  );
}

export type Part = Span & { hit: boolean };

/** Spans cut where a text is found, whatever colours it runs through. Pure. */
export function marked(given: readonly Span[], find: string): Part[] {
  const wanted = find.toLowerCase();
  if (!wanted) return given.map((span) => ({ ...span, hit: false }));
  const all = given.map(({ text }) => text).join("");
  const low = all.toLowerCase();
  if (low.length !== all.length) return given.map((span) => ({ ...span, hit: false })); // letters that change their length
  const hits: [number, number][] = [];
  for (let at = low.indexOf(wanted); at >= 0; at = low.indexOf(wanted, at + wanted.length))
    hits.push([at, at + wanted.length]);
  const made: Part[] = [];
  let from = 0;
  for (const { text, style } of given) {
    let at = from;
    const end = from + text.length;
    for (const [begin, stop] of hits) {
      if (stop <= at || begin >= end) continue;
      if (begin > at) made.push({ text: all.slice(at, begin), style, hit: false });
      made.push({ text: all.slice(Math.max(at, begin), Math.min(end, stop)), style, hit: true });
      at = Math.min(end, stop);
    }
    if (at < end) made.push({ text: all.slice(at, end), style, hit: false });
    from = end;
  }
  return made;
}

function classOf(style: Style): string {
  const names = [];
  const [fore, back] = style.inverse ? [style.back, style.fore] : [style.fore, style.back];
  if (style.bold) names.push("b");
  if (style.dim) names.push("dim");
  if (style.italic) names.push("i");
  if (style.underline) names.push("u");
  if (style.inverse && fore === undefined && back === undefined) names.push("inverse");
  if (typeof fore === "number") names.push(`f${fore}`);
  if (typeof back === "number") names.push(`k${back}`);
  return names.join(" ");
}

function coloursOf(style: Style): Record<string, string> | undefined {
  const [fore, back] = style.inverse ? [style.back, style.fore] : [style.fore, style.back];
  const own: Record<string, string> = {};
  if (typeof fore === "string") own.color = fore;
  if (typeof back === "string") own.backgroundColor = back;
  return typeof fore === "string" || typeof back === "string" ? own : undefined;
}
