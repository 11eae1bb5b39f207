/** What is seen, to keep: CSV, SVG and PNG of exactly the part and the lines that are drawn. */
import type { Window } from "./axis";
import type { Drawn } from "./curve";
import { type Frame, inView, type Look, type Pen, paint, placer, type Trace } from "./paint";

export type Seen = {
  title: string;
  axis: string;
  curves: readonly Drawn[];
  names: ReadonlyMap<string, string>;
  looks: ReadonlyMap<string, Look>;
  x: Window;
  y: Window;
  logX: boolean;
  logY: boolean;
  smooth: boolean;
};

/** A row a point: run, x, value, and where they are more than one, the lowest and highest of it. */
export function csv({ title, axis, curves, names, x, smooth }: Seen): string {
  const rows = [["run", "name", axis.toLowerCase(), title, "lowest", "highest", ...(smooth ? ["smoothed"] : [])]];
  for (const curve of curves) {
    const [from, to] = inView(curve.xs, x);
    for (let at = from; at < to; at++) {
      const place = curve.xs[at] as number;
      if (place < x[0] || place > x[1]) continue;
      const cells = [place, curve.mids[at], curve.lows[at], curve.highs[at], ...(smooth ? [curve.smooth[at]] : [])];
      rows.push([
        curve.id,
        names.get(curve.id) ?? curve.id,
        ...cells.map((cell) => (Number.isFinite(cell) ? String(cell) : "")),
      ]);
    }
  }
  return `${rows.map((row) => row.map(quoted).join(",")).join("\n")}\n`;
}

/** Quoted where need be; a cell that a spreadsheet would take for a formula is kept a text. */
function quoted(cell: string): string {
  const safe = /^[=+@\t\r]|^-(?![\d.])/.test(cell) ? `'${cell}` : cell;
  return /[",\n\r]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

type Ticks = { x: [number, string][]; y: [number, string][] };
const SIZE = { width: 800, height: 440, left: 64, top: 40, right: 16, bottom: 44 };

/** A drawing of its own, light, with a legend: for a paper or a slide. */
export function svg(seen: Seen, ticks: Ticks): string {
  const rows = seen.curves.length > 12 ? 0 : seen.curves.length;
  const frame: Frame = {
    x: seen.x,
    y: seen.y,
    logX: seen.logX,
    logY: seen.logY,
    left: SIZE.left,
    top: SIZE.top,
    width: SIZE.width - SIZE.left - SIZE.right,
    height: SIZE.height - SIZE.top - SIZE.bottom,
    ratio: 1,
  };
  const parts: string[] = [];
  const px = placer(seen.x, seen.logX, frame.left, frame.width);
  const py = placer(seen.y, seen.logY, frame.top + frame.height, -frame.height);
  const bottom = frame.top + frame.height;
  for (const [value, text] of ticks.y) {
    const at = round(py(value));
    parts.push(
      `<path d="M${frame.left} ${at}h${frame.width}" stroke="#e3e6eb"/>`,
      label(frame.left - 6, at + 4, text, "end"),
    );
  }
  for (const [value, text] of ticks.x) {
    const at = round(px(value));
    parts.push(`<path d="M${at} ${bottom}v4" stroke="#c9ced6"/>`, label(at, bottom + 17, text, "middle"));
  }
  parts.push(label(frame.left + frame.width / 2, SIZE.height - 6, seen.axis, "middle"));
  parts.push(`<text x="${frame.left}" y="24" font-size="15" font-weight="600">${escaped(seen.title)}</text>`);
  parts.push(`<g clip-path="url(#inside)">`);
  paint(svgPen(parts), frame, seen.curves, { looks: seen.looks, focus: null, smooth: seen.smooth });
  parts.push("</g>");
  seen.curves.slice(0, rows).forEach(({ id }, at) => {
    const { colour = "#888", dash = [] } = seen.looks.get(id) ?? {};
    const top = SIZE.height + 8 + at * 18;
    parts.push(`<path d="M${frame.left} ${top}h24" stroke="${colour}" stroke-width="2"${dashes(dash)}/>`);
    parts.push(label(frame.left + 32, top + 4, seen.names.get(id) ?? id, "start"));
  });
  const height = SIZE.height + rows * 18 + (rows ? 8 : 0);
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${SIZE.width}" height="${height}" viewBox="0 0 ${SIZE.width} ${height}" font-family="Helvetica, Arial, sans-serif" font-size="11" fill="#1a1d23"><rect width="100%" height="100%" fill="#fff"/><clipPath id="inside"><rect x="${frame.left}" y="${frame.top}" width="${frame.width}" height="${frame.height}"/></clipPath>${parts.join("")}</svg>\n`;
}

function svgPen(parts: string[]): Pen {
  const path = (told: Trace, close: boolean) => {
    let made = "";
    let down = false;
    for (let at = 0; at < told.length; at += 2) {
      const x = told[at] as number;
      const y = told[at + 1] as number;
      if (!Number.isFinite(x) || !Number.isFinite(y)) {
        if (close && down) made += "Z";
        down = false;
        continue;
      }
      made += `${down ? "L" : "M"}${round(x)} ${round(y)}`;
      down = true;
    }
    return made;
  };
  return {
    line: (told, { colour, width, dash, alpha }) =>
      parts.push(
        `<path d="${path(told, false)}" fill="none" stroke="${colour}" stroke-width="${width}" stroke-opacity="${alpha}" stroke-linejoin="round"${dashes(dash)}/>`,
      ),
    area: (told, colour, alpha) =>
      parts.push(
        `<path d="${path(told, true)}" fill="${colour}" fill-opacity="${alpha}" stroke="${colour}" stroke-opacity="${alpha * 2}"/>`,
      ),
    dot: (x, y, radius, colour, alpha) =>
      parts.push(`<circle cx="${round(x)}" cy="${round(y)}" r="${radius}" fill="${colour}" fill-opacity="${alpha}"/>`),
  };
}

const dashes = (dash: readonly number[]) => (dash.length ? ` stroke-dasharray="${dash.join(" ")}"` : "");
const round = (value: number) => Math.round(value * 10) / 10;
const label = (x: number, y: number, text: string, anchor: string) =>
  `<text x="${round(x)}" y="${round(y)}" text-anchor="${anchor}" fill="#59606d">${escaped(text)}</text>`;

function escaped(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll('"', "&quot;");
}

/** The canvas as it is on the screen, with its title and a legend under it. */
export function png(
  canvas: HTMLCanvasElement,
  seen: Seen,
  colours: { page: string; text: string; muted: string },
): Promise<Blob | null> {
  const ratio = devicePixelRatio;
  const rows = Math.min(seen.curves.length, 12);
  const head = 32 * ratio;
  const made = document.createElement("canvas");
  made.width = canvas.width;
  made.height = head + canvas.height + (rows * 18 + 8) * ratio;
  const pen = made.getContext("2d");
  if (!pen) return Promise.resolve(null);
  pen.fillStyle = colours.page;
  pen.fillRect(0, 0, made.width, made.height);
  pen.fillStyle = colours.text;
  pen.font = `600 ${13 * ratio}px system-ui, sans-serif`;
  pen.fillText(seen.title, 12 * ratio, 21 * ratio, made.width - 24 * ratio);
  pen.drawImage(canvas, 0, head);
  pen.font = `${11 * ratio}px system-ui, sans-serif`;
  seen.curves.slice(0, rows).forEach(({ id }, at) => {
    const top = head + canvas.height + (at * 18 + 10) * ratio;
    const look = seen.looks.get(id);
    pen.strokeStyle = look?.colour ?? "#888";
    pen.lineWidth = 2 * ratio;
    pen.setLineDash((look?.dash ?? []).map((part) => part * ratio));
    pen.beginPath();
    pen.moveTo(12 * ratio, top - 4 * ratio);
    pen.lineTo(36 * ratio, top - 4 * ratio);
    pen.stroke();
    pen.fillStyle = colours.muted;
    pen.fillText(seen.names.get(id) ?? id, 44 * ratio, top, made.width - 56 * ratio);
  });
  return new Promise((done) => made.toBlob(done, "image/png"));
}

/** A file for the person. */
export function save(name: string, content: Blob | string, type: string): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(typeof content === "string" ? new Blob([content], { type }) : content);
  link.download = name.replace(/[^\w.-]+/g, "-");
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}
