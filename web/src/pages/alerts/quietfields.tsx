/** Hours in which a channel is silent. */
export type Quiet = { begins: string; ends: string; zone: string };

const HERE = Intl.DateTimeFormat().resolvedOptions().timeZone || "UTC";

export function QuietFields({ quiet, set }: { quiet: Quiet | null; set: (quiet: Quiet | null) => void }) {
  const clock = (name: "begins" | "ends", label: string) =>
    quiet && (
      <label>
        {label}
        <input
          type="time"
          required
          value={quiet[name]}
          onInput={(event) => set({ ...quiet, [name]: event.currentTarget.value })}
        />
      </label>
    );
  return (
    <>
      <label class="check">
        <input
          type="checkbox"
          checked={quiet !== null}
          onChange={(event) => set(event.currentTarget.checked ? { begins: "22:00", ends: "07:00", zone: HERE } : null)}
        />
        Quiet hours: notifications wait until they end
      </label>
      {quiet && (
        <div class="pair">
          {clock("begins", "From")}
          {clock("ends", "To")}
          <label>
            Time zone
            <input
              type="text"
              required
              value={quiet.zone}
              onInput={(event) => set({ ...quiet, zone: event.currentTarget.value })}
            />
          </label>
        </div>
      )}
    </>
  );
}
