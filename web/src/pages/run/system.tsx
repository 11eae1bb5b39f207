/** A run's machines: what each node and GPU did, when GPUs were idle, and what to ask for next time. */
import { useMemo, useRef } from "preact/hooks";
import { get } from "../../api";
import { Chart } from "../../charts/chart";
import { makeSync, type Sync } from "../../charts/sync";
import { useView, type View } from "../../charts/view";
import { duration, NONE, when } from "../../format";
import { colourOf, DASHES, dashOf, LIGHT } from "../../palette";
import { Empty } from "../../parts/empty";
import { Sideways } from "../../parts/sideways";
import { AsOf, useNow } from "../../parts/stale";
import { setParams } from "../../url";
import { Line } from "./copy";
import { isOver, useReading, useRun } from "./feed";
import { type Board, boardsOf, drawnOf, gpuName, type MachineNode, type System } from "./figures";
import "./system.css";

const BUCKETS = 400;

export default function SystemTab({ id }: { id: string }) {
  const { data: told } = useRun();
  const view = useWallView();
  const sync = useMemo(makeSync, []);
  const over = told ? isOver(told.run.state) : false;
  const [first, last] = view.window ?? [null, null];
  const window = first === null || last === null ? {} : { first: Math.floor(first), last: Math.ceil(last) };
  const reading = useReading(
    id,
    `system ${id} ${first} ${last}`,
    (signal) =>
      get("/api/v1/runs/{run_id}/system", { path: { run_id: id }, query: { buckets: BUCKETS, ...window }, signal }),
    { every: over ? 0 : 10, pause: 5 },
  );
  const held = useRef<System | null>(null);
  if (reading.data) held.current = reading.data;
  const data = held.current; // while it is zoomed, what was there stays
  if (reading.fault && !data)
    return <Empty title="The samples could not be loaded">{`${reading.fault.what}. ${reading.fault.next}`}</Empty>;
  if (!data || !told) return null;
  if (!data.nodes.some((node) => node.figures.length || node.gpus.length))
    return (
      <Empty title="No samples">
        {told.run.source === "onward"
          ? "The supervisor samples each node every ten seconds while a leg runs; the first samples appear here soon after it starts."
          : "Onward samples only the nodes of trainings that it runs; this run only records its metrics."}
      </Empty>
    );
  return (
    <div class="system">
      <Compared data={data} />
      {view.window && (
        <p>
          <button type="button" onClick={view.reset}>
            Reset zoom <kbd>0</kbd>
          </button>
        </p>
      )}
      {data.nodes.map((node) => (
        <section key={node.node} class="system-node" aria-label={`Node ${node.node}`}>
          <header>
            <h2>
              <bdi>{node.node || "Node"}</bdi>
            </h2>
            <span class="muted">
              {legsOn(data, node)} <AsOf time={reading.readAt} after={over ? 1e9 : 60} />
            </span>
          </header>
          {node.gpus.length > 0 && <Idle node={node} data={data} />}
          <div class="system-charts">
            {boardsOf(node).map((board) => (
              <Figure
                key={board.title}
                node={data.nodes.length > 1 ? node.node : ""}
                board={board}
                view={view}
                sync={sync}
              />
            ))}
          </div>
        </section>
      ))}
    </div>
  );
}

/** Samples have a time and no step. */
function useWallView(): View {
  const view = useView();
  return useMemo(
    () => ({
      ...view,
      axis: "wall" as const,
      logX: false,
      smooth: 0,
      reset: () => setParams({ zoom: null, heights: null }, { push: true }),
    }),
    [view],
  );
}

function legsOn(data: System, { node }: MachineNode): string {
  const legs = data.legs.filter(({ nodes }) => nodes.includes(node)).map(({ leg }) => leg);
  if (!legs.length) return "";
  const shown = legs.length > 6 ? `${legs.slice(0, 3).join(", ")} … ${legs.at(-1)}` : legs.join(", ");
  return legs.length === 1 ? `leg ${shown}` : `legs ${shown}`;
}

type FigureProps = { node: string; board: Board; view: View; sync: Sync };

function Figure({ node, board, view, sync }: FigureProps) {
  const names = board.lines.map(({ name }) => name);
  const curves = useMemo(() => board.lines.map(({ name, figure }) => drawnOf(name, figure)), [board]);
  const named = names.map((name, at) => {
    const look = { colour: at % LIGHT.length, dash: Math.floor(at / LIGHT.length) % DASHES.length };
    return { id: name, name, look: { colour: colourOf(look), dash: dashOf(look) } };
  });
  const empty = () => ({ why: "There are no samples in this zoom range.", ways: ["reset zoom" as const] });
  return (
    <div class="system-chart">
      <Chart
        metric={node ? `${board.title} · ${node}` : board.title}
        drawn={{ curves, loading: false, problem: null, bads: 0, empty }}
        named={named}
        view={view}
        sync={sync}
        height={170}
        legs={false}
      />
      {named.length > 1 && (
        <p class="system-names">
          {named.map(({ name, look }) => (
            <span key={name}>
              <i style={{ background: look.colour }} />
              <bdi>{name}</bdi>
            </span>
          ))}
        </p>
      )}
    </div>
  );
}

/** When each GPU did nothing, along the run's time. */
function Idle({ node, data }: { node: MachineNode; data: System }) {
  const now = useNow(60);
  const stretches = data.legs.filter(({ nodes }) => !node.node || nodes.includes(node.node));
  const start = Math.min(
    ...stretches.map((one) => one.start),
    ...node.gpus.flatMap((gpu) => gpu.idle.map((band) => band.start)),
  );
  const end = Math.max(...stretches.map((one) => one.end ?? now), start + 1);
  const part = (from: number, to: number) => ({
    left: `${((from - start) / (end - start)) * 100}%`,
    width: `${Math.max(0.3, ((to - from) / (end - start)) * 100)}%`,
  });
  return (
    <Sideways label="When each GPU was idle">
      <table class="plain idle">
        <thead>
          <tr>
            <th>GPU</th>
            <th class="right">Mean use</th>
            <th class="right">Idle</th>
            <th>When it was idle</th>
          </tr>
        </thead>
        <tbody>
          {node.gpus.map((gpu) => (
            <tr key={gpu.uuid}>
              <th title={gpu.uuid}>{gpuName(gpu.uuid, node)}</th>
              <td class="right">
                {gpu.mean === null ? NONE : `${gpu.mean.toFixed(gpu.mean > 0 && gpu.mean < 1 ? 1 : 0)} %`}
              </td>
              <td class="right">{duration(gpu.idle_s)}</td>
              <td class="wide">
                <span class="idle-bar">
                  {gpu.idle.map((band) => (
                    <i
                      key={band.start}
                      style={part(band.start, band.end)}
                      title={`Idle from ${when(band.start, now)} for ${duration(band.end - band.start)}`}
                    />
                  ))}
                </span>
                {gpu.idle.length === 0 && <small>never for 5 min or more</small>}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </Sideways>
  );
}

function Compared({ data }: { data: System }) {
  if (!data.compared.length) return null;
  return (
    <section class="part-box" aria-label="Requested and used">
      <header>
        <h2>Requested and used</h2>
      </header>
      <Sideways label="Table of requested and used resources">
        <table class="plain">
          <thead>
            <tr>
              <th>Resource</th>
              <th class="right">Requested</th>
              <th class="right">Used</th>
              <th>Share</th>
              <th>Next time</th>
            </tr>
          </thead>
          <tbody>
            {data.compared.map((one) => (
              <tr key={one.what}>
                <th>{one.what}</th>
                <td class="right">{one.asked}</td>
                <td class="right">{one.used}</td>
                <td class="share">
                  <meter
                    min="0"
                    max="1"
                    value={Math.min(1, one.share)}
                    aria-label={`Share of ${one.what} that was used`}
                  />{" "}
                  {Math.round(one.share * 100)} %
                </td>
                <td class="wide">
                  {one.words} {one.flag && <code>{one.flag}</code>}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </Sideways>
      {data.advice && (
        <p class="advice">
          <span class="muted">All as one command line:</span> <Line text={data.advice} what="the advice" />
        </p>
      )}
    </section>
  );
}
