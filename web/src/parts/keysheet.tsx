/** The `?` sheet: the keys that hold right now, by part of the page. */
import { scopes } from "../keys";
import { Dialog } from "./dialog";

const SIGNS: Record<string, string> = {
  ArrowDown: "↓",
  ArrowUp: "↑",
  ArrowLeft: "←",
  ArrowRight: "→",
  " ": "Space",
  Escape: "Esc",
};

export function KeySheet({ close }: { close: () => void }) {
  const parts = new Map<string, Map<string, string[]>>();
  for (const { scope, keys } of [...scopes.value].reverse()) {
    const rows = parts.get(scope) ?? new Map<string, string[]>();
    for (const key of keys) rows.set(key.does, [key.keys].flat());
    parts.set(scope, rows);
  }
  return (
    <Dialog title="Keyboard shortcuts" close={close} wide>
      <div class="keysheet">
        {[...parts].map(([scope, rows]) => (
          <section key={scope}>
            <h3>{scope}</h3>
            <dl>
              {[...rows].map(([does, keys]) => (
                <div key={does}>
                  <dt>
                    {keys.map((key, at) => (
                      <span key={key}>
                        {at > 0 && " or "}
                        {key.split(/ (?=.)|\+(?=.)/).map((one) => (
                          <kbd key={one}>{SIGNS[one] ?? one}</kbd>
                        ))}
                      </span>
                    ))}
                  </dt>
                  <dd>{does}</dd>
                </div>
              ))}
            </dl>
          </section>
        ))}
      </div>
    </Dialog>
  );
}
