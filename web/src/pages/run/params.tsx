/** A run's params, and how they differ from its parent's. */
import { text, useParam } from "../../url";
import { runPage } from "./address";
import type { Overview } from "./feed";

const FIND = text("");
const MANY = 12;

export function Params({ told }: { told: Overview }) {
  const [find, setFind] = useParam("params", FIND);
  const { parent, run } = told;
  const different = parent?.different ?? {};
  const all = Object.entries({
    ...Object.fromEntries(Object.keys(different).map((key) => [key, null])),
    ...run.params,
  });
  const rows = all
    .filter(([key, value]) => `${key} ${value}`.toLowerCase().includes(find.toLowerCase()))
    .sort(([a], [b]) => Number(b in different) - Number(a in different) || a.localeCompare(b));
  if (!all.length) return <p class="muted">None. Values from --param, a params file or the training appear here.</p>;
  const changed = Object.keys(different).length;
  return (
    <>
      {parent && (
        <p class="muted">
          {changed ? `${changed} differ from ` : "The same as in "}
          <a href={runPage(parent.id)}>
            <bdi>{parent.name || parent.id}</bdi>
          </a>
          , which it was cloned from.
        </p>
      )}
      {all.length > MANY && (
        <input
          type="search"
          aria-label="Search params"
          placeholder={`Search ${all.length} params`}
          value={find}
          onInput={(event) => setFind(event.currentTarget.value)}
        />
      )}
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, and so do keys */}
      <div class="scroll-y" tabIndex={0} role="group" aria-label="Params">
        <table class="plain">
          <tbody>
            {rows.map(([key, value]) => (
              <tr key={key} class={key in different ? "changed" : ""}>
                <th>
                  <bdi>{key}</bdi>
                </th>
                <td class="mono wide">
                  {key in different && (
                    <>
                      <del>
                        <bdi>{different[key]?.[0] ?? "none"}</bdi>
                      </del>{" "}
                      →{" "}
                    </>
                  )}
                  <bdi>{value ?? "none"}</bdi>
                </td>
              </tr>
            ))}
          </tbody>
        </table>
        {!rows.length && <p class="muted">No param matches “{find}”.</p>}
      </div>
    </>
  );
}
