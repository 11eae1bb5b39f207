/** What a request asked for: its inputs, settings and resources, as they came. */
import { bytes, NONE } from "../../format";
import { type Details, value } from "./words";

export function Asked({ told }: { told: Details }) {
  const settings = Object.entries({ ...told.settings, ...told.resources });
  if (!told.inputs.length && !settings.length) return null;
  return (
    <section aria-labelledby="asked">
      <h2 id="asked">Requested</h2>
      {told.inputs.length > 0 && (
        <div class="sheet-scroll">
          <table>
            <thead>
              <tr>
                <th scope="col">Input</th>
                <th scope="col">From</th>
                <th scope="col" class="right">
                  Size
                </th>
              </tr>
            </thead>
            <tbody>
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
            </tbody>
          </table>
        </div>
      )}
      {settings.length > 0 && (
        <dl class="request-facts" aria-label="Settings">
          {settings.map(([name, given]) => (
            <div key={name}>
              <dt>
                <bdi>{name}</bdi>
              </dt>
              <dd>
                <bdi>{value(given)}</bdi>
              </dd>
            </div>
          ))}
        </dl>
      )}
    </section>
  );
}
