/** A run's first page: how far, when it will be done, what is at risk; its timeline; what it was made of. */
import type { ComponentChildren } from "preact";
import { num, short, stamp, whole } from "../../format";
import { Sideways } from "../../parts/sideways";
import { runPage } from "./address";
import { isOver, type Overview, useRun } from "./feed";
import { Jobs } from "./jobs";
import { Made } from "./made";
import { Notes } from "./notes";
import { Params } from "./params";
import { Tags } from "./tags";
import { Tiles } from "./tiles";
import { Timeline, TimelineKeys } from "./timeline";

export default function OverviewTab({ id }: { id: string }) {
  const { data } = useRun();
  if (!data) return null;
  return (
    <div class="overview">
      <Tiles told={data} />
      <Part title="Timeline" more={<TimelineKeys />} wide>
        <Timeline id={id} over={isOver(data.run.state)} />
      </Part>
      <Part title="Key metrics" more={<a href={runPage(id, "charts")}>All charts</a>}>
        <KeyMetrics id={id} told={data} />
      </Part>
      <Part title="Params">
        <Params told={data} />
      </Part>
      <Part title="Setup" wide>
        <Made id={id} told={data} />
      </Part>
      <Part title="Jobs" wide>
        <Jobs id={id} told={data} />
      </Part>
      <Part title="Tags">
        <Tags told={data} />
      </Part>
      <Part title="Notes">
        <Notes id={id} />
      </Part>
    </div>
  );
}

type PartProps = { title: string; children: ComponentChildren; more?: ComponentChildren; wide?: boolean };

export function Part({ title, children, more, wide = false }: PartProps) {
  return (
    <section class={wide ? "part-box wide" : "part-box"} aria-label={title}>
      <header>
        <h2>{title}</h2>
        {more}
      </header>
      {children}
    </section>
  );
}

function KeyMetrics({ id, told }: { id: string; told: Overview }) {
  if (!told.metrics.length)
    return (
      <p class="muted">
        No metrics yet. Log some with{" "}
        <code>
          onward.log({"{"}"loss": 0.5{"}"}, step=1)
        </code>
        , MLflow calls or TensorBoard files.
      </p>
    );
  return (
    <Sideways label="Key metrics">
      <table class="plain">
        <thead>
          <tr>
            <th>Metric</th>
            <th class="right">Last</th>
            <th class="right">Lowest</th>
            <th class="right">Highest</th>
            <th class="right">Points</th>
          </tr>
        </thead>
        <tbody>
          {told.metrics.map((metric) => (
            <tr key={metric.key}>
              <th>
                <a href={runPage(id, "charts", { full: metric.key })}>
                  <bdi>{metric.key}</bdi>
                </a>
              </th>
              <td class="right" title={`Step ${whole(metric.step)}, ${stamp(metric.time)}`}>
                <strong>{num(metric.value)}</strong>
              </td>
              <td class="right" title={`Step ${whole(metric.low_step)}`}>
                {num(metric.low)}
              </td>
              <td class="right" title={`Step ${whole(metric.high_step)}`}>
                {num(metric.high)}
              </td>
              <td class="right muted">{short(metric.points)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </Sideways>
  );
}
