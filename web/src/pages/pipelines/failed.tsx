/** What failed, each with its reason and the last lines that it wrote. */
import { whole } from "../../format";
import { href } from "../../url";
import { type Details, task } from "./words";

export function FailedParts({ told }: { told: Details }) {
  const stages = told.stages.filter(({ state }) => state === "failed");
  const tasks = told.failed_tasks;
  if (!stages.length && !tasks.length) return null;
  const left = told.tasks.failed - tasks.length;
  return (
    <section aria-labelledby="failed">
      <h2 id="failed">Failures</h2>
      {stages.map((stage, at) => (
        <Part key={stage.name} what={stage.label} why={stage.why} said={stage.evidence} open={!at}>
          <a href={href(`/runs/${stage.run}/logs`)}>Log</a>
        </Part>
      ))}
      {tasks.map((one, at) => (
        <Part
          key={one.id}
          what={task(one)}
          why={one.reason}
          hint={one.hint}
          said={one.evidence}
          open={!at && !stages.length}
        >
          <small class="mono words">results/tasks/{one.id}</small>
        </Part>
      ))}
      {left > 0 && <p class="muted">And {whole(left)} more tasks.</p>}
    </section>
  );
}

type PartProps = {
  what: string;
  why: string;
  said: string;
  hint?: string;
  open: boolean;
  children: preact.ComponentChildren;
};

function Part({ what, why, said, hint, open, children }: PartProps) {
  return (
    <details class="failed-part" open={open}>
      <summary>
        <bdi class="what">{what}</bdi> <span class="bad words">{why}</span>
      </summary>
      {hint && <p>{hint}</p>}
      {said && (
        // biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, and so do keys
        <pre role="group" tabIndex={0} aria-label={`The last lines of ${what}`}>
          {said}
        </pre>
      )}
      {children}
    </details>
  );
}
