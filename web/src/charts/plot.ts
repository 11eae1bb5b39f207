/** A plot on uPlot: its axes, cursor and selection are uPlot's, the curves are drawn by `paint`, each run with its own x. */
import uPlot from "uplot";
import type { Axis, Window } from "./axis";
import { attach } from "./hands";
import { FONT, ink } from "./ink";
import { options } from "./options";
import { canvasPen, type Frame, paint, placer } from "./paint";
import { closest, readings } from "./read";
import { moved, padded, reachX, reachY, scaled } from "./scale";
import { alike, type Found, type Shown, type Told } from "./shown";

const REACH = 24; // px: how far a point may lie from the pointer to be read

export class Plot {
  private readonly u: uPlot;
  private shown: Shown = {
    curves: [],
    looks: new Map(),
    smooth: false,
    calm: false,
    x: null,
    y: null,
    focus: null,
    legs: false,
  };
  private x: Window = [0, 1];
  private y: Window = [0, 1];
  private moving = false;
  private own = false; // the pointer is over this plot
  private elsewhere: number | null = null; // the pointer is over another one, at this x
  private readonly gone = new AbortController();

  constructor(
    place: HTMLElement,
    size: { width: number; height: number },
    axis: Axis,
    readonly logX: boolean,
    readonly logY: boolean,
    private readonly told: Told,
  ) {
    this.u = new uPlot(
      options(size, {
        axis,
        logX,
        logY,
        x: () => this.x,
        y: () => this.y,
        reset: () => told.zoom(null, null),
        draw: (u) => this.draw(u),
        selected: (u) => this.selected(u),
        pointed: () => this.pointed(),
      }),
      [
        [0, 1],
        [0, 1],
      ],
      place,
    );
    attach(this.u.over, this.gone.signal, {
      window: () => this.x,
      log: logX,
      enter: () => {
        this.own = true;
      },
      leave: () => this.leave(),
      point: (left, top) => this.u.setCursor({ left, top }),
      moving: told.moving,
      rest: (window) => told.zoom(window, undefined),
    });
  }

  /** Draw this. */
  show(shown: Shown): void {
    const before = this.shown;
    this.shown = shown;
    if (this.moving || !alike(before, shown)) this.window(shown.x);
  }

  /** Look at a window of x; the height follows what is in it, unless it was chosen. */
  window(x: Window | null, moving = false): void {
    this.moving = moving;
    const { curves, calm, y } = this.shown;
    this.x = x ?? this.home() ?? (this.logX ? [1, 10] : [0, 1]);
    this.y = y ?? reachY(curves, this.x, this.logY, calm) ?? (this.logY ? [0.1, 1] : [0, 1]);
    this.u.batch(() => {
      this.u.setScale("x", { min: this.x[0], max: this.x[1] });
      this.u.setScale("y", { min: this.y[0], max: this.y[1] });
    });
    if (this.own) this.pointed();
    else if (this.elsewhere !== null) this.point(this.elsewhere); // what came since is read too
  }

  focus(run: string | null): void {
    if (run === this.shown.focus) return;
    this.shown = { ...this.shown, focus: run };
    this.u.redraw(false, false);
  }

  private home(): Window | null {
    const reach = reachX(this.shown.curves, this.logX);
    return reach && reach[0] === reach[1] ? padded(reach[0], reach[1], this.logX, 0) : reach;
  }

  get looking(): Window {
    return this.x;
  }

  get height(): Window {
    return this.y;
  }

  resize(size: { width: number; height: number }): void {
    this.u.setSize(size);
  }

  redraw(): void {
    this.u.redraw(false, true);
  }

  get canvas(): HTMLCanvasElement {
    return this.u.ctx.canvas;
  }

  /** The ticks as they are drawn, for SVG. */
  ticks(): { x: [number, string][]; y: [number, string][] } {
    const of = (at: number): [number, string][] => {
      const axis = this.u.axes[at] as unknown as { _splits: number[] | null; _values: (string | null)[] | null };
      return (axis._splits ?? []).flatMap((split, index) =>
        axis._values?.[index] == null ? [] : [[split, String(axis._values[index])] as [number, string]],
      );
    };
    return { x: of(0), y: of(1) };
  }

  /** Another chart's pointer is at x; null: nowhere. */
  point(x: number | null): void {
    this.elsewhere = x;
    if (this.own) return;
    const left = x === null || x < this.x[0] || x > this.x[1] ? -10 : this.u.valToPos(x, "x");
    this.u.setCursor({ left, top: left < 0 ? -10 : 0 }, false);
    this.told.read(x === null || left < 0 ? null : this.found(x, left, -1));
  }

  /** Move the place that is read by a share of the width: for keys. */
  read(by: number): void {
    const { left = -10 } = this.u.cursor;
    const { clientWidth: width, clientHeight: height } = this.u.over;
    this.own = true;
    this.u.setCursor({
      left: Math.max(0, Math.min(width - 1, (left < 0 ? width / 2 : left) + by * width)),
      top: height / 2,
    });
  }

  leave(): void {
    this.own = false;
    this.u.setCursor({ left: -10, top: -10 }, false);
    this.told.hover(null);
    this.told.read(null);
  }

  /** For keys and wheels: move or scale by a share, and rest there. */
  step(by: { move?: number; scale?: number; around?: number }): void {
    let next = this.x;
    if (by.move) next = moved(next, by.move, this.logX);
    if (by.scale) next = scaled(next, by.scale, by.around ?? 0.5, this.logX);
    this.told.zoom(next, undefined);
  }

  destroy(): void {
    this.gone.abort();
    this.u.destroy();
  }

  private frame(u: uPlot): Frame {
    const { left, top, width, height } = u.bbox;
    return {
      x: this.x,
      y: this.y,
      logX: this.logX,
      logY: this.logY,
      left,
      top,
      width,
      height,
      ratio: devicePixelRatio,
    };
  }

  private draw(u: uPlot): void {
    const { ctx } = u;
    const frame = this.frame(u);
    ctx.save();
    ctx.beginPath();
    ctx.rect(frame.left, frame.top, frame.width, frame.height);
    ctx.clip();
    this.boundaries(ctx, frame);
    paint(canvasPen(ctx), frame, this.shown.curves, { ...this.shown, moving: this.moving });
    ctx.restore();
  }

  /** Thin lines where legs begin, with their numbers; of one run, or of the one in front. */
  private boundaries(ctx: CanvasRenderingContext2D, frame: Frame): void {
    const { curves, focus, legs } = this.shown;
    const curve = curves.length === 1 ? curves[0] : curves.find(({ id }) => id === focus);
    if (!curve || !legs) return;
    const px = placer(frame.x, frame.logX, frame.left, frame.width);
    ctx.font = FONT.replace("11px", `${10 * frame.ratio}px`);
    ctx.textBaseline = "top";
    ctx.lineWidth = frame.ratio;
    let free = Number.NEGATIVE_INFINITY;
    for (const [leg, x] of curve.legs) {
      const left = Math.round(px(x)) + 0.5;
      if (left < frame.left || left > frame.left + frame.width) continue;
      ctx.strokeStyle = ink.value.strong;
      ctx.setLineDash([2 * frame.ratio, 3 * frame.ratio]);
      ctx.beginPath();
      ctx.moveTo(left, frame.top);
      ctx.lineTo(left, frame.top + frame.height);
      ctx.stroke();
      ctx.setLineDash([]);
      if (left < free) continue;
      ctx.fillStyle = ink.value.faint;
      ctx.fillText(String(leg), left + 3 * frame.ratio, frame.top + frame.ratio);
      free = left + 16 * frame.ratio;
    }
  }

  private selected(u: uPlot): void {
    const { left, top, width, height } = u.select;
    if (width <= 0 && height <= 0) return;
    u.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
    const whole = { width: u.over.clientWidth, height: u.over.clientHeight };
    const x: Window = [u.posToVal(left, "x"), u.posToVal(left + width, "x")];
    const y: Window = [u.posToVal(top + height, "y"), u.posToVal(top, "y")];
    const across = width < whole.width - 1 && width > 0;
    const along = height < whole.height - 1 && height > 0;
    if (across || along) this.told.zoom(across ? x : this.shown.x, along ? y : undefined);
  }

  private pointed(): void {
    const { left = -10, top = -10 } = this.u.cursor;
    if (!this.own || left < 0) return;
    const x = this.u.posToVal(left, "x");
    this.told.hover(x);
    this.told.read(this.found(x, left, top));
  }

  private found(x: number, left: number, top: number): Found {
    const reach = this.reachAt(left);
    const found = readings(this.shown.curves, x, reach).filter(({ id }) => this.shown.looks.has(id));
    const near = top < 0 ? null : closest(found, this.u.posToVal(top, "y"), (value) => this.u.valToPos(value, "y"));
    return { x: near?.x ?? found[0]?.x ?? x, left, top, readings: found, closest: near?.id ?? null };
  }

  /** How far from the pointer a point counts: a few pixels, or, where points are far apart, half the way to the next. */
  private reachAt(left: number): number {
    const near = Math.abs(this.u.posToVal(left + REACH, "x") - this.u.posToVal(left - REACH, "x")) / 2;
    const few = this.shown.curves.some(({ xs }) => xs.length > 1 && xs.length < 60);
    return few ? (this.x[1] - this.x[0]) / 2 : near;
  }
}
