/** How all charts of the page are looked at. */
import { useMemo, useRef } from "preact/hooks";
import { whole } from "../format";
import { useKeys } from "../keys";
import { Icon } from "../parts/icon";
import { AXES, type Axis, axisMetric } from "./axis";
import { BANDS } from "./curve";
import type { View } from "./view";

const WEIGHTS = [0, 0.6, 0.9, 0.97, 0.99];
const MOST = 300;

type Props = {
  view: View;
  keys: readonly string[];
  total: number;
  grouped?: boolean;
  /** Of one run: its legs can be told apart. */
  single?: boolean;
};

export function Toolbar({ view, keys, total, grouped = false, single = false }: Props) {
  const search = useRef<HTMLInputElement>(null);
  const axes = useMemo(() => axesOf(keys, view.axis), [keys, view.axis]);
  useKeys("Charts", [
    { keys: "/", does: "Search metrics", act: () => search.current?.focus() },
    {
      keys: "x",
      does: "Next x axis",
      act: () =>
        view.setAxis(
          next(
            AXES.map(({ id }) => id),
            view.axis,
          ),
        ),
    },
    { keys: "y", does: "Log or linear y axis", act: () => view.setLogY(!view.logY) },
    { keys: "X", does: "Log or linear x axis", act: () => view.setLogX(!view.logX) },
    {
      keys: "s",
      does: "More smoothing",
      act: () => view.setSmooth(WEIGHTS.find((weight) => weight > view.smooth) ?? 0),
    },
    { keys: "o", does: "Ignore outliers in the y range, or not", act: () => view.setCalm(!view.calm) },
    { keys: "0", does: "Reset zoom (or double-click)", act: view.reset },
    { keys: "Escape", does: "Back to the grid", act: () => view.full && view.setFull("", { push: true }) },
  ]);
  const zoomed = view.window !== null || view.heights.size > 0;
  return (
    <div class="chart-bar" role="toolbar" aria-label="Chart options">
      <label class="chart-search">
        <Icon name="search" />
        <span class="hidden">Search metrics</span>
        <input
          ref={search}
          type="search"
          value={view.search}
          placeholder={total === 1 ? "Search 1 metric" : `Search ${whole(total)} metrics`}
          onInput={(event) => view.setSearch(event.currentTarget.value)}
          onKeyDown={(event) => event.key === "Escape" && event.currentTarget.blur()}
        />
      </label>
      <label>
        <span>x</span>
        <select value={view.axis} onChange={(event) => view.setAxis(event.currentTarget.value as Axis)}>
          {AXES.map(({ id, name }) => (
            <option key={id} value={id}>
              {name}
            </option>
          ))}
          {axes.length > 0 && (
            <optgroup label="A metric">
              {axes.map((key) => (
                <option key={key} value={`metric:${key}`}>
                  {key}
                </option>
              ))}
            </optgroup>
          )}
        </select>
      </label>
      <label>
        <span>Smooth</span>
        <input
          type="range"
          min="0"
          max="0.99"
          step="0.01"
          value={Math.min(0.99, view.smooth)}
          onInput={(event) => view.setSmooth(Number(event.currentTarget.value))}
        />
        <output>{view.smooth ? view.smooth.toFixed(2) : "off"}</output>
      </label>
      {grouped && (
        <label>
          <span>Band</span>
          <select value={view.band} onChange={(event) => view.setBand(event.currentTarget.value as View["band"])}>
            {BANDS.map(({ id, name }) => (
              <option key={id} value={id}>
                {name}
              </option>
            ))}
          </select>
        </label>
      )}
      <span class="segments">
        <Toggle on={view.logX} name="log x" does="Log x axis" turn={() => view.setLogX(!view.logX)} />
        <Toggle on={view.logY} name="log y" does="Log y axis" turn={() => view.setLogY(!view.logY)} />
        <Toggle
          on={view.calm}
          name="fit 98 %"
          does="Ignore the top and bottom 1 % in the y range"
          turn={() => view.setCalm(!view.calm)}
        />
        {single && (
          <Toggle
            on={view.legs}
            name="by leg"
            does="Give each leg its own colour"
            turn={() => view.setLegs(!view.legs)}
          />
        )}
      </span>
      <fieldset class="segments" aria-label="Chart size">
        {(["s", "m", "l"] as const).map((size) => (
          <Toggle
            key={size}
            on={view.size === size}
            name={size.toUpperCase()}
            does={{ s: "Small charts", m: "Medium charts", l: "Large charts" }[size]}
            turn={() => view.setSize(size)}
          />
        ))}
      </fieldset>
      {zoomed && (
        <button type="button" class="chart-reset" onClick={view.reset}>
          Reset zoom <kbd>0</kbd>
        </button>
      )}
    </div>
  );
}

function Toggle({ on, name, does, turn }: { on: boolean; name: string; does: string; turn: () => void }) {
  return (
    <button type="button" aria-pressed={on} title={does} onClick={turn}>
      {name}
    </button>
  );
}

function next<T>(all: readonly T[], now: T): T {
  return all[(all.indexOf(now) + 1) % all.length] as T;
}

/** Metrics to draw along: what sounds like an axis first, and the one chosen in any case. */
export function axesOf(keys: readonly string[], chosen: Axis): string[] {
  const likely = keys.filter((key) => /epoch|step|token|sample|iter|flop/i.test(key));
  const own = axisMetric(chosen);
  const all = new Set([...likely, ...keys.slice(0, MOST)]);
  if (own !== null) all.add(own);
  return [...all].slice(0, MOST);
}
