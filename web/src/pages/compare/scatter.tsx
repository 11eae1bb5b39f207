/** Scatter: any param or metric against any other, a point a run. */
import { useMemo } from "preact/hooks";
import type { Named } from "../../charts/chart";
import type { Sync } from "../../charts/sync";
import { num, whole } from "../../format";
import { Empty } from "../../parts/empty";
import { dark } from "../../theme";
import { go, href, text, useParam } from "../../url";
import { ramp } from "./ramp";
import { fieldsOf, type Run } from "./runs";
import { correlation, scaleOf } from "./scale";
import { useWidth } from "./size";
import { likelyMetric, nameOf, useValues } from "./values";

const codec = text();
const SPACE = { left: 72, right: 24, top: 32, bottom: 52, height: 428 };

type Props = { runs: readonly Run[]; named: readonly Named[]; keys: readonly string[]; sync: Sync };

export function Scatter({ runs, named, keys, sync }: Props) {
  const [askedX, setX] = useParam("sx", codec);
  const [askedY, setY] = useParam("sy", codec);
  const [colour, setColour] = useParam("sc", codec);
  const [width, place] = useWidth();
  const fields = useMemo(() => fieldsOf(runs), [runs]);
  const choices = useMemo(
    () => [...fields.map(({ field }) => field), ...keys.slice(0, 300).map((key) => `metrics.${key}`)],
    [fields, keys],
  );
  const likely = likelyMetric(keys);
  const x = askedX || (choices.find((field) => field.startsWith("params.")) ?? choices[0] ?? "");
  const y = askedY || (likely ? `metrics.${likely}` : (choices[1] ?? ""));
  const values = useValues(runs, [x, y, colour]);
  const scales = useMemo(() => {
    const of = (field: string) => scaleOf(runs.map((run) => values(run, field)));
    return { x: of(x), y: of(y), colour: of(colour) };
  }, [runs, values, x, y, colour]);
  const byId = new Map(named.map((one) => [one.id, one]));
  const points = runs.flatMap((run) => {
    const at = { x: scales.x.place(values(run, x)), y: scales.y.place(values(run, y)) };
    return at.x === null || at.y === null
      ? []
      : [{ run, x: at.x, y: at.y, share: colour ? scales.colour.place(values(run, colour)) : null }];
  });
  if (choices.length < 2)
    return <Empty title="These runs do not differ enough">A scatter plot needs two params or metrics that vary.</Empty>;
  const inner = {
    width: Math.max(10, width - SPACE.left - SPACE.right),
    height: SPACE.height - SPACE.top - SPACE.bottom,
  };
  const px = (share: number) => SPACE.left + 8 + share * (inner.width - 16);
  const py = (share: number) => SPACE.top + 8 + (1 - share) * (inner.height - 16);
  const together = correlation(
    points.map((point) => point.x),
    points.map((point) => point.y),
  );
  const choose = (label: string, value: string, set: (to: string) => void, none = false) => (
    <label>
      <span>{label}</span>
      <select value={value} onChange={(event) => set(event.currentTarget.value)}>
        {none && <option value="">the run</option>}
        {choices.map((field) => (
          <option key={field} value={field}>
            {nameOf(field)}
          </option>
        ))}
      </select>
    </label>
  );
  const front = sync.focus.value;
  return (
    <div class="compare-part">
      <div class="chart-bar">
        {choose("x", x, setX)}
        {choose("y", y, setY)}
        {choose("Colour", colour, setColour, true)}
        <small>
          {points.length < runs.length
            ? `${whole(points.length)} of ${whole(runs.length)} runs have both`
            : `${whole(runs.length)} runs`}
          {together !== null &&
            scales.x.kind !== "words" &&
            scales.y.kind !== "words" &&
            `; correlation ${num(together, 2)}${scales.x.kind === "log" || scales.y.kind === "log" ? " on the log scale shown" : ""}`}
        </small>
      </div>
      {colour && (
        <ul class="compare-legend" aria-label={nameOf(colour)}>
          {scales.colour.ticks.map(({ at, text: label }) => (
            <li key={label} style={{ color: ramp(at, dark.value) }}>
              <span>{label}</span>
            </li>
          ))}
        </ul>
      )}
      <div class="scatter" ref={place}>
        {points.length === 0 && (
          <p class="chart-wait">
            No run has both {nameOf(x)} and {nameOf(y)}.
          </p>
        )}
        {width > 0 && (
          <svg
            width={width}
            height={SPACE.height}
            role="img"
            aria-label={`${nameOf(y)} against ${nameOf(x)} of ${points.length} runs`}
          >
            {scales.y.ticks.map(({ at, text: label }) => (
              <g key={label}>
                <line class="grid" x1={SPACE.left} x2={width - SPACE.right} y1={py(at)} y2={py(at)} />
                <text x={SPACE.left - 8} y={py(at) + 4} text-anchor="end">
                  {label}
                </text>
              </g>
            ))}
            {scales.x.ticks.map(({ at, text: label }) => (
              <text key={label} x={px(at)} y={SPACE.height - SPACE.bottom + 14} text-anchor="middle">
                {label}
              </text>
            ))}
            <text class="name" x={12} y={20}>
              {nameOf(y)}
            </text>
            <text class="name" x={SPACE.left + inner.width / 2} y={SPACE.height - 14} text-anchor="middle">
              {nameOf(x)}
            </text>
            {points.map(({ run, x: at, y: high, share }) => (
              // biome-ignore lint/a11y/noStaticElementInteractions: the run list beside it has the same links for keys
              <circle
                key={run.id}
                cx={px(at)}
                cy={py(high)}
                r={run.id === front ? 8 : 5}
                fill={colour ? ramp(share, dark.value) : (byId.get(run.id)?.look.colour ?? "#888")}
                fill-opacity={front && run.id !== front ? 0.35 : 0.85}
                stroke="var(--raised)"
                onPointerEnter={() => (sync.focus.value = run.id)}
                onPointerLeave={() => (sync.focus.value = null)}
                onClick={() => go(href(`/runs/${run.id}`))}
              >
                <title>{`${run.name}\n${nameOf(x)}: ${values(run, x)}\n${nameOf(y)}: ${values(run, y)}${colour ? `\n${nameOf(colour)}: ${values(run, colour)}` : ""}`}</title>
              </circle>
            ))}
          </svg>
        )}
      </div>
    </div>
  );
}
