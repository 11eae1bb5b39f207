/** Runs side by side: what differs, who is best, which belong together. Pure. */
export type Run = {
  id: string;
  name: string;
  state: string;
  experiment_name: string;
  user: string;
  started: number | null;
  params: Record<string, string>;
  tags: Record<string, string>;
};

/** A column of a run: `params.lr`, `tags.team`, `experiment`, `state`, `user`. */
export function fieldOf(run: Run, field: string): string | null {
  if (field.startsWith("params.")) return run.params[field.slice(7)] ?? null;
  if (field.startsWith("tags.")) return run.tags[field.slice(5)] ?? null;
  return field === "experiment"
    ? run.experiment_name
    : field === "state"
      ? run.state
      : field === "user"
        ? run.user
        : null;
}

export type Row = { key: string; values: readonly (string | null)[]; same: boolean };

/** Params with a value a run; those that differ first. */
export function paramRows(runs: readonly Run[]): Row[] {
  const keys = [...new Set(runs.flatMap((run) => Object.keys(run.params)))].sort();
  const rows = keys.map((key) => {
    const values = runs.map((run) => run.params[key] ?? null);
    return { key, values, same: values.every((value) => value === values[0]) };
  });
  return rows.sort((one, other) => Number(one.same) - Number(other.same));
}

/** What runs can be grouped by: fields with more than one value, and fewer values than runs where there are such. */
export function fieldsOf(runs: readonly Run[]): { field: string; values: number }[] {
  const names = new Set<string>(["experiment", "state", "user"]);
  for (const run of runs) {
    for (const key of Object.keys(run.params)) names.add(`params.${key}`);
    for (const key of Object.keys(run.tags)) names.add(`tags.${key}`);
  }
  return [...names]
    .map((field) => ({ field, values: new Set(runs.map((run) => fieldOf(run, field))).size }))
    .filter(({ values }) => values > 1)
    .sort(
      (one, other) =>
        Number(one.values >= runs.length) - Number(other.values >= runs.length) || (one.field < other.field ? -1 : 1),
    );
}

export type Gathered = { name: string; runs: readonly string[] };

/** Groups by one field, numbers in their order; runs without it last. */
export function gathered(runs: readonly Run[], field: string): Gathered[] {
  const found = new Map<string | null, string[]>();
  for (const run of runs) {
    const value = fieldOf(run, field);
    const of = found.get(value);
    if (of) of.push(run.id);
    else found.set(value, [run.id]);
  }
  const short = field.replace(/^(params|tags)\./, "");
  return [...found]
    .sort(([one], [other]) => byValue(one, other))
    .map(([value, of]) => ({ name: value === null ? `no ${short}` : `${short} ${value}`, runs: of }));
}

export function byValue(one: string | null, other: string | null): number {
  if (one === null || other === null) return Number(one === null) - Number(other === null);
  const [a, b] = [Number(one), Number(other)];
  return Number.isNaN(a) || Number.isNaN(b) ? (one < other ? -1 : Number(one > other)) : a - b;
}

/** Whether less is better, as the name of a metric suggests. */
export function lessIsBetter(metric: string): boolean {
  const last = metric.split("/").at(-1) ?? metric;
  if (/acc|auc|f1|bleu|rouge|reward|score|precision|recall|map|iou|psnr|ssim|r2|throughput|per_sec/i.test(last))
    return false;
  return /loss|err|perplexity|ppl|mse|mae|rmse|nll|bpb|cer|wer|fid|time|latency|seconds|memory|grad_norm/i.test(last);
}

export type Summary = {
  value: number | string;
  low: number | null;
  high: number | null;
  low_step: number | null;
  high_step: number | null;
};

export function bestOf(summary: Summary | undefined, less: boolean): number | null {
  return summary ? (less ? summary.low : summary.high) : null;
}

/** Whose best is best. Nobody's where all are alike or only one has any. */
export function winners(values: readonly (number | null)[], less: boolean): Set<number> {
  const known = values.filter((value) => value !== null);
  const best = less ? Math.min(...known) : Math.max(...known);
  const found = new Set(values.flatMap((value, at) => (value !== null && value === best ? [at] : [])));
  return found.size === known.length ? new Set() : found;
}

/** How far from the baseline: a share where that says something, else the difference. */
export function change(value: number | null, base: number | null): { by: number; share: number | null } | null {
  if (value === null || base === null || value === base) return null;
  return { by: value - base, share: base === 0 ? null : (value - base) / Math.abs(base) };
}
