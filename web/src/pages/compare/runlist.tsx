/** The runs that are compared, to draw, leave out, pin, add and remove, without going back. */
import { useEffect, useRef, useState } from "preact/hooks";
import type { Named } from "../../charts/chart";
import type { Sync } from "../../charts/sync";
import { Swatch } from "../../charts/tip";
import { whole } from "../../format";
import { useKeys } from "../../keys";
import { Icon } from "../../parts/icon";
import { href } from "../../url";
import type { Run } from "./runs";
import { type Selection, suggest } from "./selection";

const SHOWN = 200;
const DRAWABLE = 100; // more lines than that tell nothing; groups do

type Props = { selection: Selection; named: readonly Named[]; sync: Sync };

export function RunList({ selection, named, sync }: Props) {
  const { runs, drawn } = selection;
  const byId = new Map(named.map((one) => [one.id, one]));
  const turn = (id: string) => selection.draw(drawn.has(id) ? [...drawn].filter((one) => one !== id) : [...drawn, id]);
  return (
    <aside class="compare-runs" aria-label="Compared runs">
      <Adder selection={selection} />
      {runs.length > 0 && (
        <header>
          <b>{whole(runs.length)} runs</b>
          <small>{whole([...drawn].filter((id) => byId.has(id)).length)} shown</small>
          <button
            type="button"
            class="quiet"
            onClick={() => selection.draw(runs.slice(0, DRAWABLE).map(({ id }) => id))}
            disabled={drawn.size >= Math.min(runs.length, DRAWABLE)}
          >
            {runs.length > DRAWABLE ? `Show ${DRAWABLE}` : "Show all"}
          </button>
          <button type="button" class="quiet" onClick={() => selection.draw([])}>
            None
          </button>
        </header>
      )}
      <ul>
        {runs.slice(0, SHOWN).map((run) => {
          const one = byId.get(run.id);
          const pinned = selection.baseline === run.id;
          return (
            <li
              key={run.id}
              class={drawn.has(run.id) ? undefined : "out"}
              onPointerEnter={() => (sync.focus.value = run.id)}
              onPointerLeave={() => (sync.focus.value = null)}
            >
              <label title={drawn.has(run.id) ? "Hide it in the charts" : "Show it in the charts"}>
                <input
                  type="checkbox"
                  checked={drawn.has(run.id)}
                  onChange={() => turn(run.id)}
                  aria-label={`Show ${run.name}`}
                />
                {one && <Swatch look={one.look} />}
              </label>
              <a class="clip" href={href(`/runs/${run.id}`)} title={`${run.name} · ${run.state}`}>
                <bdi>{run.name || run.id}</bdi>
              </a>
              <button
                type="button"
                class="quiet icon pin"
                aria-pressed={pinned}
                aria-label={pinned ? `${run.name} is the baseline: unpin it` : `Make ${run.name} the baseline`}
                title={pinned ? "The baseline" : "Make it the baseline"}
                onClick={() => selection.pin(run.id)}
              >
                <Icon name="view" />
              </button>
              <button
                type="button"
                class="quiet icon"
                aria-label={`Remove ${run.name}`}
                title="Remove"
                onClick={() => selection.remove(run.id)}
              >
                <Icon name="close" />
              </button>
            </li>
          );
        })}
      </ul>
      {runs.length > SHOWN && (
        <small>and {whole(runs.length - SHOWN)} more, in groups, parallel coordinates and scatter</small>
      )}
    </aside>
  );
}

/** Type a name, and take one of the runs found; what is a filter adds all it finds. */
function Adder({ selection }: { selection: Selection }) {
  const [words, setWords] = useState("");
  const [found, setFound] = useState<readonly Run[]>([]);
  const [at, setAt] = useState(0);
  const field = useRef<HTMLInputElement>(null);
  useKeys("Compare", [{ keys: "a", does: "Add a run", act: () => field.current?.focus() }]);
  const isFilter = /[<>=]|\b(and|or|like|in)\b/.test(words);
  const known = new Set(selection.runs.map(({ id }) => id));
  useEffect(() => {
    setAt(0);
    if (!words.trim() || isFilter) {
      setFound([]);
      return;
    }
    const gone = new AbortController();
    const timer = setTimeout(() => suggest(words.trim(), gone.signal).then(setFound, () => setFound([])), 150);
    return () => {
      clearTimeout(timer);
      gone.abort();
    };
  }, [words, isFilter]);
  const left = found.filter(({ id }) => !known.has(id));
  const take = (run: Run | undefined) => {
    if (isFilter) selection.setFilter(words.trim());
    else if (run) selection.add(run.id);
    setWords("");
    field.current?.focus();
  };
  const keys: Record<string, () => void> = {
    ArrowDown: () => setAt(Math.min(at + 1, left.length - 1)),
    ArrowUp: () => setAt(Math.max(at - 1, 0)),
    Enter: () => take(left[at]),
    Escape: () => (words ? setWords("") : field.current?.blur()),
  };
  return (
    <div class="compare-add">
      <input
        ref={field}
        type="text"
        role="combobox"
        aria-label="Add runs"
        aria-expanded={left.length > 0}
        aria-controls="compare-found"
        aria-activedescendant={left[at] ? `compare-found-${at}` : undefined}
        placeholder="Add a run, or a filter: params.lr = 0.1"
        value={words}
        onInput={(event) => setWords(event.currentTarget.value)}
        onKeyDown={(event) => {
          const act = keys[event.key];
          if (!act) return;
          event.preventDefault();
          act();
        }}
      />
      {selection.filter && (
        <p class="compare-filter">
          <code class="clip" title={selection.filter}>
            {selection.filter}
          </code>
          <button
            type="button"
            class="quiet icon"
            aria-label="Clear the filter"
            onClick={() => selection.setFilter("")}
          >
            <Icon name="close" />
          </button>
        </p>
      )}
      {(left.length > 0 || (isFilter && words)) && (
        <div id="compare-found" class="compare-found" role="listbox" aria-label="Matching runs">
          {isFilter ? (
            <button type="button" class="quiet" role="option" aria-selected="true" onClick={() => take(undefined)}>
              Add all runs that match this filter <kbd>Enter</kbd>
            </button>
          ) : (
            left.map((run, index) => (
              <button
                key={run.id}
                id={`compare-found-${index}`}
                type="button"
                class="quiet"
                role="option"
                aria-selected={index === at}
                onClick={() => take(run)}
              >
                <bdi class="clip">{run.name}</bdi>
                <small>{run.experiment_name}</small>
              </button>
            ))
          )}
        </div>
      )}
    </div>
  );
}
