/** How the charts of a page are looked at; all of it is in the address. */
import { useMemo } from "preact/hooks";
import { type Codec, flag, list, number, oneOf, type Setter, setParams, text, useParam } from "../url";
import { type Axis, isAxis, type Window } from "./axis";
import type { Band } from "./curve";

const axisCodec: Codec<Axis> = {
  read: (given) => (given !== null && isAxis(given) ? given : "step"),
  write: (axis) => (axis === "step" ? null : axis),
};

/** `from..to`, with as many digits as a screen can tell apart. */
export const windowCodec: Codec<Window | null> = {
  read: (given) => {
    const [from, to, ...more] = (given ?? "").split("..").map(Number);
    return from !== undefined && to !== undefined && !more.length && from < to && Number.isFinite(to - from)
      ? [from, to]
      : null;
  },
  write: (window) => (window === null ? null : `${tidy(window[0], window)}..${tidy(window[1], window)}`),
};

function tidy(value: number, [from, to]: Window): number {
  const digits = Math.ceil(Math.log10(Math.max(Math.abs(from), Math.abs(to)) / (to - from))) + 5;
  return Number(value.toPrecision(Math.max(5, Math.min(17, digits))));
}

const items = list();

/** Windows by name: `name from..to`, each written by `write`. */
export const windowsCodec = (write: (window: Window) => string): Codec<ReadonlyMap<string, Window>> => ({
  read: (given) => {
    const found = new Map<string, Window>();
    for (const item of items.read(given)) {
      const cut = item.lastIndexOf(" ");
      const window = windowCodec.read(item.slice(cut + 1));
      if (cut > 0 && window) found.set(item.slice(0, cut), window);
    }
    return found;
  },
  write: (windows) => items.write([...windows].map(([name, window]) => `${name} ${write(window)}`)),
});

/** Heights of single charts, by metric. */
const heightsCodec = windowsCodec((window) => windowCodec.write(window) ?? "");

const codecs = {
  smooth: number(0),
  logX: flag(),
  logY: flag(),
  calm: flag(),
  legs: flag(),
  q: text(),
  full: text(),
  band: oneOf(["deviation", "error", "range"], "deviation") as Codec<Band>,
  size: oneOf(["s", "m", "l"], "m"),
  pin: list(),
  tables: list(),
};

export type View = {
  axis: Axis;
  setAxis: Setter<Axis>;
  smooth: number;
  setSmooth: Setter<number>;
  logX: boolean;
  setLogX: Setter<boolean>;
  logY: boolean;
  setLogY: Setter<boolean>;
  /** Heights without the outermost hundredths. */
  calm: boolean;
  setCalm: Setter<boolean>;
  /** Each leg of a run with its own colour. */
  legs: boolean;
  setLegs: Setter<boolean>;
  window: Window | null;
  heights: ReadonlyMap<string, Window>;
  /** Zoom: all charts along x, one chart in height (undefined: as it is; null: all). A step that "back" undoes. */
  zoom: (x: Window | null, metric: string, y: Window | null | undefined) => void;
  reset: () => void;
  search: string;
  setSearch: Setter<string>;
  /** Groups whose state is not what it would be by itself. */
  turned: readonly string[];
  setTurned: Setter<readonly string[]>;
  full: string;
  setFull: Setter<string>;
  band: Band;
  setBand: Setter<Band>;
  size: "s" | "m" | "l";
  setSize: Setter<"s" | "m" | "l">;
  /** Charts shown as tables. */
  tables: readonly string[];
  turnTable: (metric: string) => void;
  pins: readonly string[];
  setPins: Setter<readonly string[]>;
};

const turnedCodec = list();

export function useView(): View {
  const [axis] = useParam("x", axisCodec);
  const [smooth, setSmooth] = useParam("smooth", codecs.smooth);
  const [logX, setLogX] = useParam("logx", codecs.logX);
  const [logY, setLogY] = useParam("logy", codecs.logY);
  const [calm, setCalm] = useParam("calm", codecs.calm);
  const [legs, setLegs] = useParam("legs", codecs.legs);
  const [window] = useParam("zoom", windowCodec);
  const [heights] = useParam("heights", heightsCodec);
  const [search, setSearch] = useParam("q", codecs.q);
  const [turned, setTurned] = useParam("turned", turnedCodec);
  const [full, setFull] = useParam("full", codecs.full);
  const [band, setBand] = useParam("band", codecs.band);
  const [size, setSize] = useParam("size", codecs.size);
  const [tables, setTables] = useParam("table", codecs.tables);
  const [pins, setPins] = useParam("pin", codecs.pin);
  return useMemo<View>(
    () => ({
      axis,
      // a window of steps means nothing along another axis
      setAxis: (to) => setParams({ x: axisCodec.write(to), zoom: null }),
      smooth: Math.min(0.999, Math.max(0, smooth)),
      setSmooth,
      logX,
      setLogX,
      logY,
      setLogY,
      calm,
      setCalm,
      legs,
      setLegs,
      window,
      heights,
      zoom: (x, metric, y) => {
        const next = new Map(heights);
        if (y === null) next.delete(metric);
        else if (y) next.set(metric, y);
        setParams({ zoom: windowCodec.write(x), heights: heightsCodec.write(next) }, { push: true });
      },
      reset: () => setParams({ zoom: null, heights: null }, { push: true }),
      search,
      setSearch,
      turned,
      setTurned,
      full,
      setFull,
      band,
      setBand,
      size,
      setSize,
      tables,
      turnTable: (metric) => setTables(toggled(tables, metric)),
      pins,
      setPins,
    }),
    [
      axis,
      smooth,
      setSmooth,
      logX,
      setLogX,
      logY,
      setLogY,
      calm,
      setCalm,
      legs,
      setLegs,
      window,
      heights,
      search,
      setSearch,
      turned,
      setTurned,
      full,
      setFull,
      band,
      setBand,
      size,
      setSize,
      tables,
      setTables,
      pins,
      setPins,
    ],
  );
}

export function toggled(items: readonly string[], item: string): readonly string[] {
  return items.includes(item) ? items.filter((one) => one !== item) : [...items, item];
}
