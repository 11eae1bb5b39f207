/** How many runs there are in each state; a click shows these alone. */
import { whole } from "../../format";

const STATES = ["running", "waiting", "submitted", "failed", "finished", "cancelled"];

type Props = {
  states: Readonly<Record<string, number>>;
  state: string;
  set: (state: string) => void;
  archived: boolean;
  setArchived: (archived: boolean) => void;
  /** Null: there is nothing to fold. */
  fold: boolean | null;
  setFold: (fold: boolean) => void;
};

export function States({ states, state, set, archived, setArchived, fold, setFold }: Props) {
  const all = Object.values(states).reduce((sum, runs) => sum + runs, 0);
  const shown = STATES.filter((one) => states[one] || one === state);
  return (
    <div class="states" role="group" aria-label="States">
      <button type="button" class="quiet" aria-pressed={state === ""} onClick={() => set("")}>
        All <span class="count">{whole(all)}</span>
      </button>
      {shown.map((one) => (
        <button
          key={one}
          type="button"
          class="quiet"
          aria-pressed={state === one}
          onClick={() => set(state === one ? "" : one)}
        >
          <span class={`state-dot ${one}`} />
          {one} <span class="count">{whole(states[one] ?? 0)}</span>
        </button>
      ))}
      <button type="button" class="quiet" aria-pressed={archived} onClick={() => setArchived(!archived)}>
        Archived
      </button>
      {fold !== null && (
        <button
          type="button"
          class="quiet"
          aria-pressed={fold}
          title="Show the runs of a pipeline as one line"
          onClick={() => setFold(!fold)}
        >
          Fold pipelines
        </button>
      )}
    </div>
  );
}
