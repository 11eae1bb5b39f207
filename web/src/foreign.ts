/** Links of other pages that are in people's terminals and notes: MLflow's clients print `#/experiments/ID/runs/RUN`. */
export function ours(hash: string): { path: string } | null {
  const run = /^#\/experiments\/[^/?]+\/runs\/([^/?]+)/.exec(hash)?.[1];
  if (run) return { path: `/runs/${run}` };
  return /^#\/experiments\/[^/?]+/.test(hash) ? { path: "/experiments" } : null;
}
