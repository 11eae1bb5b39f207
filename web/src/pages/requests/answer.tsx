/** What came of a request: its reason, the last lines of its training, metrics, and the results to take away. */
import { address } from "../../api";
import { bytes, num } from "../../format";
import { Icon } from "../../parts/icon";
import type { Details } from "./words";

export function Answer({ told }: { told: Details }) {
  const metrics = Object.entries(told.metrics);
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
      {metrics.length > 0 && (
        <dl class="request-facts" aria-label="Metrics">
          {metrics.map(([name, metric]) => (
            <div key={name}>
              <dt>
                <bdi>{name}</bdi>
              </dt>
              <dd>{num(metric)}</dd>
            </div>
          ))}
        </dl>
      )}
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
    <div class="sheet-scroll">
      <table>
        <thead>
          <tr>
            <th scope="col">Result</th>
            <th scope="col" class="right">
              Size
            </th>
            <th scope="col">SHA-256</th>
            <th scope="col">
              <span class="hidden">Actions</span>
            </th>
          </tr>
        </thead>
        <tbody>
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
        </tbody>
      </table>
    </div>
  );
}
