/** What a request asked for: its inputs, settings and resources, as they came. */
import { bytes, NONE } from "../../format";
import { type Fact, Facts } from "../../parts/sheet/detail";
import { Rows } from "../../parts/sheet/rows";
import { type Details, value } from "./words";

const COLUMNS = ["Input", "From", { name: "Size", right: true }];

export function Asked({ told }: { told: Details }) {
  const settings = Object.entries({ ...told.settings, ...told.resources }).map(
    ([name, given]): Fact => [name, <bdi>{value(given)}</bdi>],
  );
  if (!told.inputs.length && !settings.length) return null;
  return (
    <section aria-labelledby="asked">
      <h2 id="asked">Requested</h2>
      {told.inputs.length > 0 && (
        <Rows columns={COLUMNS}>
          {told.inputs.map(({ name, url, size }) => (
            <tr key={name}>
              <th scope="row" class="words">
                <bdi>{name}</bdi>
              </th>
              <td class="words">
                <bdi>{url}</bdi>
              </td>
              <td class="right">{size === null ? NONE : bytes(size)}</td>
            </tr>
          ))}
        </Rows>
      )}
      {settings.length > 0 && <Facts label="Settings" facts={settings} />}
    </section>
  );
}
