/** Other resources and limits for a leg to come: empty fields change nothing. */
export type Changed = Readonly<Record<"time" | "mem" | "partition" | "max-legs" | "max-restarts", string>>;
export const NOTHING: Changed = { time: "", mem: "", partition: "", "max-legs": "", "max-restarts": "" };

const RESOURCES = ["time", "mem", "partition"] as const;
const LIMITS = ["max-legs", "max-restarts"] as const;
const WORDS: Record<keyof Changed, { name: string; example: string }> = {
  time: { name: "Time limit of a leg", example: "24:00:00" },
  mem: { name: "Memory", example: "32G" },
  partition: { name: "Partition", example: "gpu" },
  "max-legs": { name: "Max legs", example: "40" },
  "max-restarts": { name: "Max restarts without progress", example: "3" },
};

/** As the API takes them. */
export function given(changed: Changed): { resources: Record<string, string>; limits: Record<string, number> } {
  const resources: Record<string, string> = {};
  const limits: Record<string, number> = {};
  for (const key of RESOURCES) if (changed[key].trim()) resources[key] = changed[key].trim();
  for (const key of LIMITS) if (changed[key].trim()) limits[key] = Number(changed[key]);
  return { resources, limits };
}

type Known = Readonly<Record<string, unknown>>;
type Props = { changed: Changed; set: (to: Changed) => void; resources: Known; limits: Known };

export function Changes({ changed, set, resources, limits }: Props) {
  return (
    <details class="run-changes">
      <summary>Change resources or limits</summary>
      <div class="run-fields">
        {[...RESOURCES, ...LIMITS].map((key) => (
          <label key={key}>
            {WORDS[key].name}
            <input
              type="text"
              inputMode={(LIMITS as readonly string[]).includes(key) ? "numeric" : "text"}
              value={changed[key]}
              placeholder={asked(key, resources, limits) || `for example ${WORDS[key].example}`}
              onInput={(event) => set({ ...changed, [key]: event.currentTarget.value })}
            />
          </label>
        ))}
      </div>
    </details>
  );
}

/** What it has now, as a person would write it. */
function asked(key: keyof Changed, resources: Known, limits: Known): string {
  const value = resources[key] ?? limits[key.replace("-", "_")];
  if (value === null || value === undefined) return "";
  if (key === "time" && typeof value === "number") return clock(value);
  return key === "mem" && typeof value === "number" ? `${value}M` : String(value);
}

/** Seconds as schedulers write them: 1-02:03:04. */
export function clock(seconds: number): string {
  const two = (part: number) => String(Math.floor(part)).padStart(2, "0");
  const days = Math.floor(seconds / 86400);
  return `${days ? `${days}-` : ""}${two((seconds % 86400) / 3600)}:${two((seconds % 3600) / 60)}:${two(seconds % 60)}`;
}

/** A number stays one, and so do yes and no. */
export function typed(text: string): string | number | boolean {
  if (text === "true" || text === "false") return text === "true";
  return /^-?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?$/i.test(text.trim()) ? Number(text) : text;
}
