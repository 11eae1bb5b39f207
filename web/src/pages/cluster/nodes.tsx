/** The nodes as a map: a cell each, filled by what of it is handed out; those that take no jobs are hatched and say why. */
import { byMake, isSpent, many, memory, type Node, said, shareOf, takesJobs } from "./words";

const ROOMY = 60; // nodes; more are small squares

type Props = {
  nodes: readonly Node[];
  node: string;
  choose: (name: string) => void;
};

export function Nodes({ nodes, node, choose }: Props) {
  const dense = nodes.length > ROOMY;
  const shut = nodes.filter((one) => !takesJobs(one));
  return (
    <>
      {byMake(nodes).map(({ name, nodes: alike }) => (
        <section key={name} class="make">
          <h3>
            {many(alike.length, "node")} of {name}
          </h3>
          <ul class={dense ? "map dense" : "map"}>
            {alike.map((one) => (
              <li key={one.name}>
                <Cell node={one} dense={dense} pressed={one.name === node} choose={choose} />
              </li>
            ))}
          </ul>
        </section>
      ))}
      {dense && <Legend />}
      {shut.length > 0 && <Shut nodes={shut} choose={choose} />}
    </>
  );
}

type CellProps = { node: Node; dense: boolean; pressed: boolean; choose: (name: string) => void };

function Cell({ node, dense, pressed, choose }: CellProps) {
  return (
    <button
      type="button"
      class={`node ${node.state} ${isSpent(node) ? "spent" : ""}`}
      aria-pressed={pressed}
      title={said(node)}
      onClick={() => choose(pressed ? "" : node.name)}
    >
      <span class="hidden">{said(node)}</span>
      {dense ? (
        <span class="level" style={{ height: `${shareOf(node) * 100}%` }} />
      ) : (
        <span class="node-look" aria-hidden="true">
          <span class="node-name clip">{node.name}</span>
          <Meter name="CPU" used={node.cpus_used} total={node.cpus} />
          {node.mem > 0 && <Meter name="mem" used={node.mem_used} total={node.mem} />}
          {node.gpus.map((gpus) => (
            <Pips key={gpus.type} {...gpus} />
          ))}
          {!takesJobs(node) && <span class="node-why clip">{node.why || node.state}</span>}
        </span>
      )}
    </button>
  );
}

function Meter({ name, used, total }: { name: string; used: number; total: number }) {
  return (
    <span class={used >= total && total > 0 ? "meter spent" : "meter"}>
      <span class="meter-name">{name}</span>
      <span class="track">
        <span class="fill" style={{ width: `${total ? (100 * Math.min(used, total)) / total : 0}%` }} />
      </span>
    </span>
  );
}

/** A square a GPU; of more than sixteen, a bar. */
function Pips({ type, used, total }: { type: string; used: number; total: number }) {
  if (total > 16) return <Meter name={type || "GPU"} used={used} total={total} />;
  return (
    <span class={used >= total ? "meter spent" : "meter"}>
      <span class="meter-name clip">{type || "GPU"}</span>
      <span class="pips">
        {Array.from({ length: total }, (_, at) => (
          <span key={at} class={at < used ? "pip used" : "pip"} />
        ))}
      </span>
    </span>
  );
}

function Legend() {
  return (
    <p class="legend">
      <span class="node free" /> free <span class="node partly half" /> in use <span class="node spent" /> full{" "}
      <span class="node drained" /> unavailable
    </p>
  );
}

function Shut({ nodes, choose }: { nodes: readonly Node[]; choose: (name: string) => void }) {
  const why = new Map<string, Node[]>();
  for (const node of nodes) {
    const key = node.why ? `${node.state}: ${node.why}` : node.state;
    why.set(key, [...(why.get(key) ?? []), node]);
  }
  return (
    <section class="shut">
      <h3>Unavailable</h3>
      <ul>
        {[...why].map(([words, some]) => (
          <li key={words}>
            <span class="shut-why">{words}</span>{" "}
            {some.map(({ name }) => (
              <button key={name} type="button" class="quiet link" onClick={() => choose(name)}>
                {name}
              </button>
            ))}
          </li>
        ))}
      </ul>
    </section>
  );
}

/** One node in full. */
export function NodeDetails({ node, close }: { node: Node; close: () => void }) {
  return (
    <section class="node-details" aria-label={`Node ${node.name}`}>
      <h2>
        {node.name} <span class={`state-word ${node.state}`}>{node.state}</span>
      </h2>
      {node.why && <p>{node.why}</p>}
      <dl>
        <div>
          <dt>CPUs</dt>
          <dd>
            {node.cpus_used} of {node.cpus} allocated
          </dd>
        </div>
        {node.mem > 0 && (
          <div>
            <dt>Memory</dt>
            <dd>
              {memory(node.mem_used)} of {memory(node.mem)}
            </dd>
          </div>
        )}
        {node.gpus.map(({ type, used, total }) => (
          <div key={type}>
            <dt>{type || "GPUs"}</dt>
            <dd>
              {used} of {total} allocated
            </dd>
          </div>
        ))}
      </dl>
      <button type="button" onClick={close}>
        All nodes
      </button>
    </section>
  );
}
