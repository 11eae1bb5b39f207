/** A cluster as it is now: what it has, who uses it, why my jobs wait, and what could start. */
import { useRef } from "preact/hooks";
import { useKeys } from "../../keys";
import { Empty } from "../../parts/empty";
import { AsOf } from "../../parts/stale";
import { oneOf, setParams, text, useParam } from "../../url";
import "./cluster.css";
import { useClusters, usePicture } from "./feed";
import { Jobs } from "./jobs";
import { NodeDetails, Nodes } from "./nodes";
import { Queues } from "./queues";
import { chosen, memory, type Picture } from "./words";

const CLUSTER = text("");
const QUEUE = text("");
const NODE = text("");
const WORDS = text("");
const WHOSE = oneOf(["mine", "all"], "all");

export default function ClusterPage() {
  const { clusters, fault } = useClusters();
  const [wanted, setWanted] = useParam("cluster", CLUSTER);
  const name = wanted || (clusters ? (clusters.find(({ auto }) => auto)?.name ?? clusters[0]?.name ?? null) : null);
  const seen = usePicture(name);
  useKeys("Cluster", [{ keys: "r", does: "Refresh", act: seen.again }]);
  const trouble = seen.fault ?? fault;
  return (
    <div class="cluster">
      <header class="cluster-head">
        <h1>Cluster</h1>
        {clusters && (
          <div class="cluster-choices" role="group" aria-label="Clusters">
            {clusters.map((one) => (
              <button
                key={one.name}
                type="button"
                class="quiet"
                aria-pressed={one.name === name}
                title={one.host ? `${one.scheduler}, through ssh host ${one.host}` : one.scheduler}
                onClick={() => setWanted(one.auto ? "" : one.name, { push: true })}
              >
                {one.name}
              </button>
            ))}
          </div>
        )}
        <AsOf time={seen.readAt} after={45} />
      </header>
      {seen.picture ? (
        <Shown picture={seen.picture} key={name} trouble={seen.fault?.what ?? seen.picture.trouble} />
      ) : trouble ? (
        <Empty title={`${name ?? "The cluster"} cannot be shown`}>
          {trouble.what}. {trouble.next}{" "}
          <button type="button" onClick={seen.again}>
            Try again
          </button>
        </Empty>
      ) : (
        <p class="none" role="status">
          Loading {name ?? "clusters"} …
        </p>
      )}
    </div>
  );
}

function Shown({ picture, trouble }: { picture: Picture; trouble: string }) {
  const [queue, setQueue] = useParam("queue", QUEUE);
  const [node, setNode] = useParam("node", NODE);
  const [words, setWords] = useParam("q", WORDS);
  const [whose, setWhose] = useParam("jobs", WHOSE);
  const box = useRef<HTMLInputElement>(null);
  useKeys("Cluster's jobs", [
    { keys: "/", does: "Search jobs", act: () => box.current?.focus() },
    {
      keys: "m",
      does: "Show only my jobs, or all",
      act: () => setWhose(whose === "mine" ? "all" : "mine", { push: true }),
    },
    {
      keys: "Escape",
      does: "Show all nodes and queues",
      act: () => setParams({ node: null, queue: null }, { push: true }),
    },
  ]);
  const here = picture.queues.find(({ name }) => name === queue);
  const nodes = here ? picture.nodes.filter(({ name }) => here.nodes.includes(name)) : picture.nodes;
  const one = picture.nodes.find(({ name }) => name === node);
  const own = whose === "mine" ? picture.jobs.filter(({ mine }) => mine) : picture.jobs;
  const jobs = chosen(own, { queue: here ? queue : "", node: one ? node : "", words });
  const narrowed = Boolean(here || one || words || whose === "mine");
  return (
    <>
      {trouble && (
        <p class="trouble" role="status">
          This snapshot may be out of date: {trouble}.
        </p>
      )}
      <Totals picture={picture} />
      <section aria-labelledby="queues">
        <h2 id="queues">Queues</h2>
        <Queues
          queues={picture.queues}
          openings={picture.openings}
          queue={queue}
          choose={(to) => setQueue(to, { push: true })}
        />
      </section>
      <section aria-labelledby="nodes">
        <h2 id="nodes">
          {here ? `Nodes of ${queue}` : "Nodes"} <span class="count">{nodes.length}</span>
        </h2>
        {one && <NodeDetails node={one} close={() => setNode("", { push: true })} />}
        <Nodes nodes={nodes} node={node} choose={(to) => setNode(to, { push: true })} />
      </section>
      <section aria-labelledby="jobs">
        <div class="jobs-head">
          <h2 id="jobs">
            Jobs{here && ` of ${queue}`}
            {one && ` on ${node}`} <span class="count">{jobs.length}</span>
          </h2>
          <div class="cluster-choices" role="group" aria-label="Whose jobs">
            <button type="button" class="quiet" aria-pressed={whose === "all"} onClick={() => setWhose("all")}>
              All
            </button>
            <button type="button" class="quiet" aria-pressed={whose === "mine"} onClick={() => setWhose("mine")}>
              Mine
            </button>
          </div>
          <input
            ref={box}
            type="search"
            placeholder="Search jobs"
            aria-label="Search jobs"
            value={words}
            onInput={(event) => setWords(event.currentTarget.value)}
          />
        </div>
        <Jobs
          jobs={jobs}
          none={narrowed ? "No job matches." : "No jobs are running or queued."}
          more={picture.jobs_total - picture.jobs.length}
        />
      </section>
      {picture.notes.map((note) => (
        <p key={note} class="muted">
          Note: {note}.
        </p>
      ))}
    </>
  );
}

function Totals({ picture }: { picture: Picture }) {
  const told = picture.totals.filter(({ total }) => total > 0);
  const own = picture.jobs.filter(({ mine }) => mine);
  return (
    <dl class="totals">
      {told.map(({ what, used, total }) => {
        const name = what === "cpus" ? "CPUs" : what === "mem" ? "Memory" : what.replace(/^gpu:/, "") || "GPUs";
        const words = what === "mem" ? `${memory(used)} of ${memory(total)}` : `${used} of ${total}`;
        return (
          <div key={what}>
            <dt>{name}</dt>
            <dd>
              <span class="amount">{words}</span>
              <span class="track">
                <span class="fill" style={{ width: `${(100 * used) / total}%` }} />
              </span>
            </dd>
          </div>
        );
      })}
      <div>
        <dt>Jobs of {picture.user}</dt>
        <dd>
          <span class="amount">
            {own.filter(({ nodes }) => nodes.length).length} running, {own.filter(({ nodes }) => !nodes.length).length}{" "}
            waiting
          </span>
        </dd>
      </div>
    </dl>
  );
}
