/** Parallel coordinates: a line a run through its params and results. Drag along an axis to keep only what passes there. */
import { useMemo } from "preact/hooks";
import type { Named } from "../../charts/chart";
import type { Sync } from "../../charts/sync";
import { toggled, windowsCodec } from "../../charts/view";
import { num, whole } from "../../format";
import { Empty } from "../../parts/empty";
import { Menu } from "../../parts/menu";
import { dark } from "../../theme";
import { list, useParam } from "../../url";
import { AxisOf } from "./axis";
import { ramp } from "./ramp";
import { fieldsOf, type Run } from "./runs";
import { type Brush, passes, scaleOf } from "./scale";
import type { Selection } from "./selection";
import { useWidth } from "./size";
import { likelyMetric, nameOf, useValues } from "./values";

const axesCodec = list();
/** By field, as shares of the axis. */
const brushCodec = windowsCodec(([low, high]) => `${low.toFixed(3)}..${high.toFixed(3)}`);

const TOP = 44;
const CLOSE = 150; // px between axes: long names would overlap
const HEIGHT = 340;
const MOST = 12;

type Props = {
  runs: readonly Run[];
  named: readonly Named[];
  keys: readonly string[];
  selection: Selection;
  sync: Sync;
};

export function Parallel({ runs, keys, selection, sync }: Props) {
  const [chosen, setChosen] = useParam("axes", axesCodec);
  const [brushes, setBrushes] = useParam("brush", brushCodec);
  const [width, place] = useWidth();
  const fields = useMemo(() => fieldsOf(runs), [runs]);
  const likely = likelyMetric(keys);
  const axes = useMemo(() => {
    if (chosen.length) return chosen;
    const params = fields
      .filter(({ field, values }) => field.startsWith("params.") && (values < runs.length || runs.length < 12))
      .map(({ field }) => field);
    return [...params.slice(0, 6), ...(likely ? [`metrics.${likely}`] : [])];
  }, [chosen, fields, likely, runs.length]);
  const values = useValues(runs, axes);
  const scales = useMemo(
    () => new Map(axes.map((axis) => [axis, scaleOf(runs.map((run) => values(run, axis)))])),
    [axes, runs, values],
  );
  const placed = useMemo(
    () =>
      runs.map((run) => ({
        run,
        at: new Map(axes.map((axis) => [axis, scales.get(axis)?.place(values(run, axis)) ?? null])),
      })),
    [runs, axes, scales, values],
  );
  const passing = placed.filter(({ at }) => passes(at, brushes));
  const inside = new Set(passing.map(({ run }) => run.id));
  const last = axes.at(-1) ?? "";
  const side = width < 600 ? 44 : 64;
  const x = (index: number) =>
    side + (axes.length > 1 ? (index * (width - 2 * side)) / (axes.length - 1) : (width - 2 * side) / 2);
  const y = (share: number) => TOP + (1 - share) * HEIGHT;
  const path = (at: ReadonlyMap<string, number | null>) => {
    let made = "";
    let down = false;
    axes.forEach((axis, index) => {
      const share = at.get(axis) ?? null;
      if (share !== null) made += `${down ? "L" : "M"}${x(index).toFixed(1)} ${y(share).toFixed(1)}`;
      down = share !== null;
    });
    return made;
  };
  const brush = (axis: string, to: Brush | null) => {
    const next = new Map(brushes);
    if (to) next.set(axis, to);
    else next.delete(axis);
    setBrushes(next);
  };
  const choices = [...fields.map(({ field }) => field), ...keys.slice(0, 300).map((key) => `metrics.${key}`)];
  const front = sync.focus.value;
  if (axes.length < 2)
    return (
      <Empty title="These runs do not differ enough">Parallel coordinates need two params or metrics that vary.</Empty>
    );
  return (
    <div class="compare-part">
      <div class="chart-bar">
        <Menu label={`Axes ${axes.length}`} title="Choose axes">
          {() => (
            <div class="compare-axes">
              {choices.map((field) => (
                <label key={field}>
                  <input
                    type="checkbox"
                    checked={axes.includes(field)}
                    disabled={!axes.includes(field) && axes.length >= MOST}
                    onChange={() => setChosen(toggled(axes, field))}
                  />{" "}
                  {nameOf(field)}
                </label>
              ))}
            </div>
          )}
        </Menu>
        <span>
          {brushes.size
            ? `${whole(passing.length)} of ${whole(runs.length)} runs selected`
            : `${whole(runs.length)} runs; drag along an axis to select a range`}
        </span>
        {brushes.size > 0 && (
          <>
            <button type="button" onClick={() => selection.draw(passing.slice(0, 50).map(({ run }) => run.id))}>
              Plot these
            </button>
            <button type="button" class="quiet" onClick={() => setBrushes(new Map())}>
              Clear
            </button>
          </>
        )}
        <small class="compare-ramp">
          Colour: {nameOf(last)}, from <i style={{ background: ramp(0, dark.value) }} /> low to{" "}
          <i style={{ background: ramp(1, dark.value) }} /> high
        </small>
      </div>
      <div class="parallel" ref={place}>
        {width > 0 && (
          <svg
            width={width}
            height={HEIGHT + TOP + 16}
            role="group"
            aria-label={`${runs.length} runs through ${axes.map(nameOf).join(", ")}`}
          >
            <g fill="none" stroke-linejoin="round">
              {[...placed]
                .sort(
                  (one, other) =>
                    Number(inside.has(one.run.id)) - Number(inside.has(other.run.id)) ||
                    Number(one.run.id === front) - Number(other.run.id === front),
                )
                .map(({ run, at }) => (
                  <path
                    key={run.id}
                    d={path(at)}
                    stroke={inside.has(run.id) ? ramp(at.get(last) ?? null, dark.value) : "var(--line)"}
                    stroke-width={run.id === front ? 3.5 : 1.5}
                    stroke-opacity={
                      inside.has(run.id) ? (front && run.id !== front && inside.has(front) ? 0.25 : 0.8) : 0.6
                    }
                    onPointerEnter={() => (sync.focus.value = run.id)}
                    onPointerLeave={() => (sync.focus.value = null)}
                  >
                    <title>{`${run.name}\n${axes.map((axis) => `${nameOf(axis)}: ${told(values(run, axis))}`).join("\n")}`}</title>
                  </path>
                ))}
            </g>
            {axes.map((axis, index) => {
              const scale = scales.get(axis);
              return (
                scale && (
                  <AxisOf
                    key={axis}
                    name={nameOf(axis)}
                    scale={scale}
                    x={x(index)}
                    top={TOP}
                    height={HEIGHT}
                    brush={brushes.get(axis) ?? null}
                    set={(to) => brush(axis, to)}
                    end={index === axes.length - 1}
                    raised={x(1) - x(0) < CLOSE && (axes.length - index) % 2 === 0}
                  />
                )
              );
            })}
          </svg>
        )}
      </div>
    </div>
  );
}

function told(value: string | number | null): string {
  return value === null ? "–" : typeof value === "number" ? num(value) : value;
}
