/** How far a run is: a thin bar and the number. */
import { percent } from "../format";

export function Progress({ fraction, label, state = "" }: { fraction: number | null; label?: string; state?: string }) {
  if (fraction === null) return <span class="progress none">{label ?? "–"}</span>;
  const part = Math.max(0, Math.min(1, fraction));
  return (
    <span
      class={`progress ${state}`}
      role="progressbar"
      aria-valuenow={Math.round(part * 100)}
      aria-valuemin={0}
      aria-valuemax={100}
      title={label}
    >
      <span class="track">
        <span class="fill" style={{ width: `${part * 100}%` }} />
      </span>
      <span class="number">{percent(part)}</span>
    </span>
  );
}
