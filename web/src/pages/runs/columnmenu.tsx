/** Which columns the list has, and in which order. Any metric, param or tag can be one. */
import { useState } from "preact/hooks";
import { Icon } from "../../parts/icon";
import { Menu } from "../../parts/menu";
import { type Chosen, columnOf, FIXED, USUAL } from "./columns";
import { useKnownKeys } from "./words";

type Props = { chosen: readonly Chosen[]; set: (chosen: readonly Chosen[]) => void };

export function moved<T extends { id: string }>(list: readonly T[], id: string, by: number): T[] {
  const from = list.findIndex((one) => one.id === id);
  const one = list[from];
  if (!one) return [...list];
  const rest = list.filter((other) => other !== one);
  const to = Math.max(0, Math.min(rest.length, from + by));
  return [...rest.slice(0, to), one, ...rest.slice(to)];
}

export function ColumnMenu({ chosen, set }: Props) {
  return (
    <Menu
      title="Columns"
      end
      label={
        <>
          <Icon name="columns" />
          <span class="label">Columns</span>
        </>
      }
    >
      {() => <Panel chosen={chosen} set={set} />}
    </Menu>
  );
}

function Panel({ chosen, set }: Props) {
  const [text, setText] = useState("");
  const keys = useKnownKeys(text);
  const has = (id: string) => chosen.some((one) => one.id === id);
  const toggle = (id: string) => {
    const column = columnOf(id);
    if (has(id)) set(chosen.filter((one) => one.id !== id));
    else if (column) set([...chosen, { id, width: column.width }]);
  };
  const found = [...FIXED.map(({ id }) => id), ...keys].filter((id) => {
    const words = text.toLowerCase();
    return (
      (text || !has(id)) && (id.toLowerCase().includes(words) || columnOf(id)?.title.toLowerCase().includes(words))
    );
  });
  return (
    <div class="column-menu">
      <input
        type="text"
        placeholder="Find a column, metric, param or tag"
        aria-label="Find a column"
        value={text}
        onInput={(event) => setText(event.currentTarget.value)}
      />
      {!text && (
        <ul>
          {chosen.map(({ id }, at) => (
            <li key={id}>
              <label>
                <input
                  type="checkbox"
                  checked
                  aria-label={spoken(id)}
                  disabled={id === "name"}
                  onChange={() => toggle(id)}
                />
                <bdi class="clip">{columnOf(id)?.title}</bdi>
                <Room id={id} />
              </label>
              <button
                type="button"
                class="quiet icon"
                aria-label={`Move ${id} up`}
                disabled={at === 0}
                onClick={() => set(moved(chosen, id, -1))}
              >
                <Icon name="up" />
              </button>
              <button
                type="button"
                class="quiet icon"
                aria-label={`Move ${id} down`}
                disabled={at === chosen.length - 1}
                onClick={() => set(moved(chosen, id, 1))}
              >
                <Icon name="down" />
              </button>
            </li>
          ))}
        </ul>
      )}
      <ul>
        {found.slice(0, 60).map((id) => (
          <li key={id}>
            <label title={columnOf(id)?.about}>
              <input
                type="checkbox"
                checked={has(id)}
                aria-label={spoken(id)}
                disabled={id === "name"}
                onChange={() => toggle(id)}
              />
              <bdi class="clip">{columnOf(id)?.title}</bdi>
              <Room id={id} />
            </label>
          </li>
        ))}
        {!found.length && <li class="muted">No matches.</li>}
      </ul>
      <button
        type="button"
        class="quiet"
        onClick={() => set(USUAL.map((id) => ({ id, width: columnOf(id)?.width ?? 100 })))}
      >
        Reset to the default columns
      </button>
    </div>
  );
}

function spoken(id: string): string {
  return [columnOf(id)?.title, /^(metric|param|tag)s\./.exec(id)?.[1]].filter(Boolean).join(" ");
}

function Room({ id }: { id: string }) {
  const room = /^(metric|param|tag)s\./.exec(id)?.[1];
  return room ? <small>{room}</small> : null;
}
