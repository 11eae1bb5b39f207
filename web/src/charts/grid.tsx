/** Charts in sections by prefix; one is made when it comes into view, and let go when it is far from it. */
import type { ComponentChildren, JSX } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { whole } from "../format";
import { colourOf, DASHES, dashOf, LIGHT } from "../palette";
import { Icon } from "../parts/icon";
import { Chart, type Named } from "./chart";
import { byLegs } from "./curve";
import { type Group, useGroups, useLines } from "./lines";
import { openByItself, PINNED, type Section, sections } from "./prefix";
import type { Sync } from "./sync";
import { toggled, type View } from "./view";

export const HEIGHTS = { s: 140, m: 200, l: 300 } as const;
const MANY = 12; // so many lines that nobody tells their single points apart: the zoom asks again
const BUCKETS = { s: 320, m: 480, l: 900 } as const;

type Shared = {
  /** What is drawn, each with its look; with `groups`, these are the groups. */
  named: readonly Named[];
  groups?: readonly Group[] | null;
  view: View;
  sync: Sync;
};

export function ChartGrid({ keys, ...shared }: Shared & { keys: readonly string[] }) {
  const { view } = shared;
  const all = useMemo(() => sections(keys, view.pins), [keys, view.pins]);
  const open = useMemo(() => openByItself(all, view.search !== ""), [all, view.search]);
  if (view.full && keys.includes(view.full)) return <Large metric={view.full} {...shared} />;
  return (
    <div class={`chart-grid ${view.size}`}>
      {all.map((section) => (
        <Part
          key={section.name}
          section={section}
          open={open.has(section.name) !== view.turned.includes(section.name)}
          {...shared}
        />
      ))}
    </div>
  );
}

function Part({ section, open, ...shared }: Shared & { section: Section; open: boolean }) {
  const { view } = shared;
  const { name, keys } = section;
  return (
    <section class="chart-part">
      <h2>
        <button
          type="button"
          class="quiet"
          aria-expanded={open}
          onClick={() => view.setTurned(toggled(view.turned, name))}
        >
          <span class={open ? "twist open" : "twist"}>
            <Icon name="right" />
          </span>
          {name}
          <span class="count">{whole(keys.length)}</span>
        </button>
      </h2>
      {open && (
        <div class="chart-cells">
          {keys.map((key) => (
            <InView key={key} height={HEIGHTS[view.size] + 34}>
              <MetricChart
                metric={key}
                sort={name === PINNED ? "pinned" : "plain"}
                height={HEIGHTS[view.size]}
                {...shared}
              />
            </InView>
          ))}
        </div>
      )}
    </section>
  );
}

function Large({ metric, ...shared }: Shared & { metric: string }) {
  return (
    <div class="chart-large">
      <h2 class="hidden">One chart</h2>
      <button type="button" class="quiet" onClick={() => shared.view.setFull("", { push: true })}>
        <Icon name="close" /> All charts
      </button>
      <MetricChart
        metric={metric}
        sort="large"
        height={Math.max(280, Math.min(640, window.innerHeight - 300))}
        {...shared}
      />
    </div>
  );
}

export function MetricChart({
  groups,
  sort,
  ...more
}: Shared & { metric: string; sort: "plain" | "pinned" | "large"; height: number }) {
  return groups ? <OfGroups groups={groups} {...more} /> : <OfRuns large={sort === "large"} {...more} />;
}

type One = Omit<Shared, "groups"> & { metric: string; height: number };

function OfRuns({ metric, named, view, sync, height, large }: One & { large: boolean }) {
  const ids = named.map(({ id }) => id).join("\n");
  const runs = useMemo(() => (ids ? ids.split("\n") : []), [ids]);
  const fine = large ? 1400 : BUCKETS[view.size];
  const drawn = useLines(metric, runs, view, sync, runs.length > MANY ? Math.min(fine, 400) : fine);
  const apart = useMemo(
    () => (view.legs && runs.length === 1 ? drawn.curves.flatMap(byLegs) : null),
    [view.legs, runs, drawn.curves],
  );
  const legs = apart?.map(({ id }) => id).join("\n") ?? "";
  const theme = colourOf({ colour: 0, dash: 0 });
  const parts = useMemo<readonly Named[]>(
    () => (theme && legs ? legs.split("\n").map((id) => ({ id, name: id, look: legLook(id) })) : []),
    [legs, theme],
  );
  const shown = apart ? { drawn: { ...drawn, curves: apart, counted: drawn.curves }, named: parts } : { drawn, named };
  return <Chart metric={metric} {...shown} view={view} sync={sync} height={height} legs={!apart} />;
}

function legLook(id: string): Named["look"] {
  const leg = Number(id.replace("leg ", "")) - 1;
  const look = { colour: leg % LIGHT.length, dash: Math.floor(leg / LIGHT.length) % DASHES.length };
  return { colour: colourOf(look), dash: dashOf(look) };
}

function OfGroups({ metric, named, groups, view, sync, height }: One & { groups: readonly Group[] }) {
  const drawn = useGroups(metric, groups, view, 240);
  return <Chart metric={metric} drawn={drawn} named={named} view={view} sync={sync} height={height} legs={false} />;
}

const watched = new WeakMap<Element, (near: boolean) => void>();
let watcher: IntersectionObserver | null = null;

function watch(place: Element, tell: (near: boolean) => void): () => void {
  watcher ??= new IntersectionObserver(
    (entries) => {
      for (const { target, isIntersecting } of entries) watched.get(target)?.(isIntersecting);
    },
    { rootMargin: "400px 0px" },
  );
  watched.set(place, tell);
  watcher.observe(place);
  return () => watcher?.unobserve(place);
}

/** A place that is filled while it is in view or near it. */
export function InView({ height, children }: { height: number; children: ComponentChildren }): JSX.Element {
  const at = useRef<HTMLDivElement>(null);
  const [near, setNear] = useState(false);
  useEffect(() => (at.current ? watch(at.current, setNear) : undefined), []);
  return (
    <div ref={at} class="chart-cell" style={{ minHeight: `${height}px` }}>
      {near && children}
    </div>
  );
}
