/** How uPlot is asked to make axes, cursor and selection. */
import type uPlot from "uplot";
import type { Axis, Window } from "./axis";
import { FONT, ink } from "./ink";
import { DURATION_STEPS, logTicks, wordsFor } from "./ticks";

type Has = {
  axis: Axis;
  logX: boolean;
  logY: boolean;
  x: () => Window;
  y: () => Window;
  reset: () => void;
  draw: (u: uPlot) => void;
  selected: (u: uPlot) => void;
  pointed: () => void;
};

const logAxis: Pick<uPlot.Axis, "splits" | "filter"> = {
  splits: (u, at, low, high) =>
    logTicks(low, high, Math.floor((at ? u.bbox.height / 28 : u.bbox.width / 56) / devicePixelRatio)),
  filter: (_u, splits) => splits,
};

export function options({ width, height }: { width: number; height: number }, has: Has): uPlot.Options {
  const durations = has.axis === "relative" && !has.logX;
  const plain = { stroke: () => ink.value.muted, font: FONT, gap: 4, border: { show: false } };
  const lines = (strong: boolean) => ({ stroke: () => (strong ? ink.value.strong : ink.value.line), width: 1 });
  return {
    width,
    height,
    padding: [10, 18, 0, 0], // half of the last number along stands to the right of the plot
    legend: { show: false },
    cursor: {
      y: false,
      points: { show: false },
      drag: { x: true, y: true, uni: 24, dist: 4, setScale: false },
      bind: {
        mousedown: (_u, _target, handle) => (event) => {
          if (!event.shiftKey && !event.button) handle(event);
          return null;
        },
        dblclick: () => () => {
          has.reset();
          return null;
        },
      },
    },
    scales: {
      x: { time: has.axis === "wall", distr: has.logX ? 3 : 1, range: () => [...has.x()] as [number, number] },
      y: { distr: has.logY ? 3 : 1, range: () => [...has.y()] as [number, number] },
    },
    axes: [
      {
        ...plain,
        size: 26,
        space: has.axis === "wall" ? 64 : 56,
        ...(has.logX ? logAxis : {}),
        grid: { show: false },
        ticks: { ...lines(true), size: 4 },
        ...(durations ? { incrs: DURATION_STEPS } : {}),
        values: (_u, splits) => wordsFor(has.axis, splits) as string[],
      },
      {
        ...plain,
        size: (u, values) =>
          Math.max(28, ...(values ?? []).map((value) => (value ? Math.ceil(measure(u, value)) + 12 : 0))),
        space: 32,
        ...(has.logY ? logAxis : {}),
        grid: lines(false),
        ticks: { show: false },
        values: (_u, splits) => wordsFor("step", splits) as string[],
      },
    ],
    series: [{}, { scale: "y", paths: () => null, points: { show: false } }],
    hooks: {
      draw: [(u) => has.draw(u)],
      setSelect: [(u) => has.selected(u)],
      setCursor: [() => has.pointed()],
    },
  };
}

function measure(u: uPlot, text: string): number {
  u.ctx.save();
  u.ctx.font = FONT;
  const { width } = u.ctx.measureText(text);
  u.ctx.restore();
  return width;
}
