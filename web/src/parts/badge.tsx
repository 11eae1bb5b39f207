/** A run's state: a shape and a word, with the colour only helping. */
export type State = "submitted" | "running" | "waiting" | "finished" | "failed" | "cancelled";

const SHAPES: Record<State, string> = {
  submitted: "M8 3.5a4.5 4.5 0 1 0 0 9 4.5 4.5 0 0 0 0-9Z",
  running: "M5.5 3.5v9l7-4.5Z",
  waiting: "M5 3.5v9M11 3.5v9",
  finished: "M3 8.5 6.5 12 13 4.5",
  failed: "M4 4l8 8M12 4l-8 8",
  cancelled: "M4 8h8",
};
const FILLED: ReadonlySet<State> = new Set<State>(["running"]);

/** `word`: another one than the state's, of what is not a run. */
export function Badge({
  state,
  word,
  title,
}: {
  state: string;
  word?: string | undefined;
  title?: string | undefined;
}) {
  const known = state in SHAPES ? (state as State) : null;
  return (
    <span class={`badge ${state}`} title={title}>
      <svg
        viewBox="0 0 16 16"
        width="12"
        height="12"
        aria-hidden="true"
        class={known && FILLED.has(known) ? "filled" : ""}
      >
        <path d={known ? SHAPES[known] : "M8 8v.1"} />
      </svg>
      {word ?? state}
    </span>
  );
}
