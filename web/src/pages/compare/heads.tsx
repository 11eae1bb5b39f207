/** The heads of a table with a column a run. */
import type { Named } from "../../charts/chart";
import { Swatch } from "../../charts/tip";
import { href } from "../../url";

export function Heads({ named, baseline, first }: { named: readonly Named[]; baseline: string; first: string }) {
  return (
    <thead>
      <tr>
        <th scope="col">{first}</th>
        {named.map(({ id, name, look }) => (
          <th key={id} scope="col" class={id === baseline ? "base" : undefined}>
            <Swatch look={look} />
            <a class="clip" href={href(`/runs/${id}`)} title={name}>
              <bdi>{name}</bdi>
            </a>
            {id === baseline && <small>baseline</small>}
          </th>
        ))}
      </tr>
    </thead>
  );
}
