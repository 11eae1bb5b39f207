/** The workers that measure: those at work and those that failed, and the others when asked for. */
import { Badge } from "../../parts/badge";
import { flag, href, useParam } from "../../url";
import type { Worker } from "./words";

const ALL = flag(false);

export function Workers({ workers }: { workers: readonly Worker[] }) {
  const [all, setAll] = useParam("workers", ALL);
  const telling = workers.filter(({ state }) => state !== "finished");
  const shown = all ? workers : telling;
  const over = workers.length - telling.length;
  return (
    <section aria-labelledby="workers">
      <div class="sheet-head">
        <h2 id="workers">Workers</h2>
        {over > 0 && (
          <button type="button" class="quiet" aria-pressed={all} onClick={() => setAll(!all, { push: true })}>
            {all ? "Hide finished workers" : `${over} finished`}
          </button>
        )}
      </div>
      {shown.length ? (
        <ul class="workers">
          {shown.map(({ number, pool, run, state, cause }) => (
            <li key={run}>
              <a href={href(`/runs/${run}`)}>worker {number}</a>
              <Badge state={state === "queued" ? "submitted" : state} word={state} />
              <span class="muted words">
                <bdi>{pool}</bdi>
                {cause && `: ${cause}`}
              </span>
            </li>
          ))}
        </ul>
      ) : (
        <p class="muted">No workers are running.</p>
      )}
    </section>
  );
}
