/** What came of a request: its reason, the last lines of its training, metrics, and the results to take away. */
import { address } from "../../api";
import { bytes, num } from "../../format";
import { Icon } from "../../parts/icon";
import { type Fact, Facts } from "../../parts/sheet/detail";
import { ACTIONS, Rows } from "../../parts/sheet/rows";
import type { Details } from "./words";

const COLUMNS = ["Result", { name: "Size", right: true }, "SHA-256", ACTIONS];

export function Answer({ told }: { told: Details }) {
  const metrics = Object.entries(told.metrics).map(([name, metric]): Fact => [name, num(metric)]);
  if (!told.reason && !told.results.length && !metrics.length && !told.log_tail) return null;
  return (
    <section aria-labelledby="answer">
      <h2 id="answer">{told.outcome ? "Answer" : "Progress so far"}</h2>
      {told.reason && (
        <p class="words">
          {told.reason}
          {told.next && <small class="request-next">{told.next}</small>}
        </p>
      )}
      {told.results.length > 0 && <Results told={told} />}
      {metrics.length > 0 && <Facts label="Metrics" facts={metrics} />}
      {told.log_tail && (
        // biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, and so do keys
        <pre class="request-log" role="group" tabIndex={0} aria-label="Last lines of its training log">
          {told.log_tail}
        </pre>
      )}
    </section>
  );
}

function Results({ told }: { told: Details }) {
  return (
    <Rows columns={COLUMNS}>
      {told.results.map(({ name, size, sha256 }) => (
        <tr key={name}>
          <th scope="row" class="words">
            <bdi>{name}</bdi>
          </th>
          <td class="right">{bytes(size)}</td>
          <td class="mono" title={sha256}>
            {sha256.slice(0, 12)}…
          </td>
          <td class="acts">
            <a
              href={address("/api/v1/requests/{id}/results/{name}", { path: { id: told.id, name } })}
              download
              aria-label={`Download ${name}`}
            >
              <Icon name="download" />
            </a>
          </td>
        </tr>
      ))}
    </Rows>
  );
}
