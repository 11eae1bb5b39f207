/** Curves as lines on a plane: one walk for the screen and for SVG. Pure but for the pen. */
import type { Window } from "./axis";
import type { Drawn } from "./curve";
import { firstFrom } from "./line";

export type Pen = {
  line: (trace: Trace, look: Stroke) => void;
  area: (trace: Trace, colour: string, alpha: number) => void;
  dot: (x: number, y: number, radius: number, colour: string, alpha: number) => void;
};
/** Corners, and where the pen is lifted: a row of x, y pairs, NaN for a lift. */
export type Trace = number[];
export type Stroke = { colour: string; width: number; dash: readonly number[]; alpha: number };
export type Look = { colour: string; dash: readonly number[] };

export type Frame = {
  x: Window;
  y: Window;
  logX: boolean;
  logY: boolean;
  left: number;
  top: number;
  width: number;
  height: number;
  /** Pixels of the device a CSS pixel has. */
  ratio: number;
};

/** From a value to a place, made once for many. */
export function placer(window: Window, log: boolean, from: number, length: number): (value: number) => number {
  const [low, high] = log ? [Math.log(window[0]), Math.log(window[1])] : window;
  const scale = length / (high - low || 1);
  return log
    ? (value) => (value > 0 ? from + (Math.log(value) - low) * scale : Number.NaN)
    : (value) => from + (value - low) * scale;
}

export type Painting = {
  looks: ReadonlyMap<string, Look>;
  focus: string | null;
  smooth: boolean;
  /** A hand moves it: where there is much to draw, only the lines, roughly; the rest comes when the hand rests. */
  moving?: boolean;
};
const MUCH = 8000; // corners that any machine draws thirty times a second

/** Bands first, then raw lines, then what is to be read. */
export function paint(pen: Pen, frame: Frame, curves: readonly Drawn[], painting: Painting): void {
  const { looks, focus, smooth } = painting;
  const px = placer(frame.x, frame.logX, frame.left, frame.width);
  const py = placer(frame.y, frame.logY, frame.top + frame.height, -frame.height);
  const known = curves.filter(({ id }) => looks.has(id));
  const others = focus !== null && known.length > 1 && known.some(({ id }) => id === focus) ? focus : null;
  const ordered =
    others === null ? known : [...known.filter(({ id }) => id !== others), ...known.filter(({ id }) => id === others)];
  const crowd = known.length;
  const corners = known.reduce((sum, { xs }) => sum + xs.length, 0);
  if (painting.moving && corners > MUCH) {
    sketch(pen, frame, ordered, painting, px, py);
    return;
  }
  const floor = frame.top + frame.height;
  for (const curve of ordered) {
    if (!curve.band) continue;
    const [from, to] = inView(curve.xs, frame.x);
    const { colour } = looks.get(curve.id) as Look;
    const alpha = (crowd > 10 ? 0.1 : crowd > 3 ? 0.14 : 0.2) * (others !== null && curve.id !== others ? 0.4 : 1);
    pen.area(ribbon(curve, from, to, px, py, floor), colour, alpha);
  }
  const width = (crowd > 20 ? 1 : 1.5) * frame.ratio;
  for (const curve of ordered) {
    const { colour, dash } = looks.get(curve.id) as Look;
    const [from, to] = inView(curve.xs, frame.x);
    const back = others !== null && curve.id !== others;
    const front = others !== null && !back;
    const scaledDash = dash.map((part) => part * frame.ratio);
    if (smooth && !(curve.band && crowd > 10))
      pen.line(trace(curve.xs, curve.mids, from, to, px, py), {
        colour,
        width: frame.ratio,
        dash: [],
        alpha: back ? 0.1 : 0.28,
      });
    const told = trace(curve.xs, smooth ? curve.smooth : curve.mids, from, to, px, py);
    pen.line(told, { colour, width: front ? width * 1.6 : width, dash: scaledDash, alpha: back ? 0.3 : 1 });
    const few = to - from <= frame.width / frame.ratio / 16;
    dots(pen, told, few ? 2 * frame.ratio : 0, 1.6 * frame.ratio, colour, back ? 0.3 : 1);
  }
}

/** The lines alone, thin and with fewer corners. */
function sketch(
  pen: Pen,
  frame: Frame,
  curves: readonly Drawn[],
  { looks, focus, smooth }: Painting,
  px: (value: number) => number,
  py: (value: number) => number,
): void {
  const most = Math.max(40, Math.min(frame.width / frame.ratio / 3, MUCH / curves.length));
  for (const { id, xs, mids, smooth: even } of curves) {
    const [from, to] = inView(xs, frame.x);
    const told = trace(xs, smooth ? even : mids, from, to, px, py, Math.ceil((to - from) / most));
    pen.line(told, {
      colour: (looks.get(id) as Look).colour,
      width: frame.ratio,
      dash: [],
      alpha: focus && id !== focus ? 0.4 : 1,
    });
  }
}

/** The places of a rising row that are in a window, and one more on each side, so that lines run to the edge. */
export function inView(xs: Float64Array, window: Window): [number, number] {
  const from = Math.max(0, firstFrom(xs, window[0]) - 1);
  let to = firstFrom(xs, window[1]);
  while (to < xs.length && xs[to] === window[1]) to++;
  return [from, Math.min(xs.length, to + 1)];
}

export function trace(
  xs: Float64Array,
  ys: Float64Array,
  from: number,
  to: number,
  px: (value: number) => number,
  py: (value: number) => number,
  every = 1,
): Trace {
  const made: Trace = [];
  for (let at = from; at < to; at += every) made.push(px(xs[at] as number), py(ys[at] as number));
  return made;
}

/** The outline of a band; on a log axis what is not above zero lies on the floor. A lift between two closed pieces. */
function ribbon(
  curve: Drawn,
  from: number,
  to: number,
  px: (v: number) => number,
  py: (v: number) => number,
  floor: number,
): Trace {
  const made: Trace = [];
  let start = -1;
  for (let at = from; at <= to; at++) {
    const there = at < to && Number.isFinite(curve.highs[at] as number) && Number.isFinite(px(curve.xs[at] as number));
    if (there && start < 0) start = at;
    if (there || start < 0) continue;
    for (let one = start; one < at; one++)
      made.push(px(curve.xs[one] as number), onFloor(py(curve.highs[one] as number), floor));
    for (let one = at - 1; one >= start; one--)
      made.push(px(curve.xs[one] as number), onFloor(py(curve.lows[one] as number), floor));
    made.push(Number.NaN, Number.NaN);
    start = -1;
  }
  return made;
}

function onFloor(place: number, floor: number): number {
  return Number.isFinite(place) ? place : floor;
}

/** A point with a gap on both sides is a dot, or nothing would be seen of it; where there are few, each is. */
function dots(pen: Pen, told: Trace, each: number, alone: number, colour: string, alpha: number): void {
  const there = (at: number) =>
    at >= 0 && at < told.length && Number.isFinite(told[at] as number) && Number.isFinite(told[at + 1] as number);
  for (let at = 0; at < told.length; at += 2) {
    if (!there(at)) continue;
    if (each) pen.dot(told[at] as number, told[at + 1] as number, each, colour, alpha);
    else if (!there(at - 2) && !there(at + 2))
      pen.dot(told[at] as number, told[at + 1] as number, alone, colour, alpha);
  }
}

/** A pen for a canvas; far outside is cut off, for some browsers lose such lines whole. */
export function canvasPen(context: CanvasRenderingContext2D): Pen {
  const cut = (place: number) => Math.max(-32000, Math.min(32000, place));
  const walk = (told: Trace, close: boolean) => {
    context.beginPath();
    let down = false;
    for (let at = 0; at < told.length; at += 2) {
      const x = told[at] as number;
      const y = told[at + 1] as number;
      if (!Number.isFinite(x) || !Number.isFinite(y)) {
        if (close && down) context.closePath();
        down = false;
      } else if (down) context.lineTo(cut(x), cut(y));
      else {
        context.moveTo(cut(x), cut(y));
        down = true;
      }
    }
  };
  return {
    line(told, { colour, width, dash, alpha }) {
      walk(told, false);
      context.globalAlpha = alpha;
      context.strokeStyle = colour;
      context.lineWidth = width;
      context.lineJoin = "bevel"; // round ones cost twice as much, and nobody sees them
      context.setLineDash(dash as number[]);
      context.stroke();
      context.globalAlpha = 1;
      context.setLineDash([]);
    },
    area(told, colour, alpha) {
      walk(told, true);
      context.globalAlpha = alpha;
      context.fillStyle = colour;
      context.fill();
      context.globalAlpha = Math.min(1, alpha * 2); // a lone spike is thinner than a pixel: its outline keeps it in sight
      context.strokeStyle = colour;
      context.lineWidth = devicePixelRatio;
      context.stroke();
      context.globalAlpha = 1;
    },
    dot(x, y, radius, colour, alpha) {
      context.beginPath();
      context.globalAlpha = alpha;
      context.fillStyle = colour;
      context.arc(cut(x), cut(y), radius, 0, 2 * Math.PI);
      context.fill();
      context.globalAlpha = 1;
    },
  };
}
