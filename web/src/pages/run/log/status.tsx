/** Below a log: where in it one is, and whether its end is followed. */
import { bytes, percent } from "../../../format";
import type { Book } from "./book";
import type { ViewProps } from "./view";

type Props = ViewProps & { book: Book; seen: number; follow: boolean; show: (at: number | null) => void };

export function Status({ book, seen, follow, growing, show }: Props) {
  const { size } = book;
  if (!size) return null;
  return (
    <div class="log-status">
      <input
        type="range"
        aria-label="Position in the log"
        aria-valuetext={`${bytes(seen)} of ${bytes(size)}`}
        min="0"
        max={size}
        step={Math.max(1, Math.floor(size / 1000))}
        value={follow ? size : seen}
        onChange={(event) => {
          const to = Number(event.currentTarget.value);
          show(to >= size * 0.999 ? null : to);
        }}
      />
      <span class="muted log-place">
        {follow ? "end" : percent(seen / size)} of {bytes(size)}
      </span>
      <button
        type="button"
        class={follow && growing ? "turn on" : "turn"}
        aria-pressed={follow}
        onClick={() => show(null)}
      >
        {growing ? (follow ? "Following" : "Follow") : "Jump to the end"}
      </button>
    </div>
  );
}
