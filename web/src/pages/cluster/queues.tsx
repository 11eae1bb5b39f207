/** The queues: their limits, how many wait, and what could start in each right now. */
import { Sideways } from "../../parts/sideways";
import { limitOf, many, type Opening, offers, type Queue } from "./words";

type Props = {
  queues: readonly Queue[];
  openings: readonly Opening[];
  queue: string;
  choose: (name: string) => void;
};

export function Queues({ queues, openings, queue, choose }: Props) {
  return (
    <Sideways label="Queues, in a table">
      <table class="cluster-table queues">
        <thead>
          <tr>
            <th scope="col">Queue</th>
            <th scope="col">Time limit</th>
            <th scope="col" class="right">
              Nodes
            </th>
            <th scope="col" class="right">
              Running
            </th>
            <th scope="col" class="right">
              Waiting
            </th>
            <th scope="col">Could start now</th>
          </tr>
        </thead>
        <tbody>
          {queues.map((one) => (
            <tr key={one.name} class={one.name === queue ? "chosen" : ""}>
              <th scope="row">
                <button
                  type="button"
                  class="quiet link"
                  aria-pressed={one.name === queue}
                  title="Show only its nodes and jobs"
                  onClick={() => choose(one.name === queue ? "" : one.name)}
                >
                  {one.name}
                </button>
                {about(one).map((words) => (
                  <small key={words}>{words}</small>
                ))}
              </th>
              <td>{limitOf(one)}</td>
              <td class="right">{one.nodes.length}</td>
              <td class="right">{one.running}</td>
              <td class="right">{one.waiting}</td>
              <td>
                <Now queue={one} openings={openings.filter((opening) => opening.queue === one.name)} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </Sideways>
  );
}

function about(queue: Queue): string[] {
  return [
    ...(queue.default ? ["default"] : []),
    ...(queue.preemptible ? ["may be preempted"] : []),
    ...(queue.max_nodes ? [`at most ${many(queue.max_nodes, "node")}`] : []),
    ...(queue.open && queue.closed_on.length ? [`closed on ${queue.closed_on.slice(0, 3).join(", ")}`] : []),
  ];
}

function Now({ queue, openings }: { queue: Queue; openings: readonly Opening[] }) {
  if (!queue.open) return <span class="bad">Closed: {queue.why}</span>;
  if (!openings.length) return <span class="muted">Nothing: no node has free CPUs</span>;
  const ahead = openings[0]?.ahead ?? 0;
  return (
    <ul class="openings">
      {openings.map((one) => (
        <li key={one.gpu_type + one.gpus}>{offers(one)}</li>
      ))}
      {ahead > 0 && (
        <li class="muted" title="They wait only for free resources, and may get them first">
          {many(ahead, "job")} ahead in the queue
        </li>
      )}
    </ul>
  );
}
