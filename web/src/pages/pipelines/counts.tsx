/** How many tasks are done, at work and failed; those that failed stand out. */
import { whole } from "../../format";
import { type Line, tasks } from "./words";

export function Counts({ counts }: { counts: Line["tasks"] }) {
  return (
    <>
      {tasks(counts)}
      {counts.failed > 0 && (
        <>
          , <span class="bad">{whole(counts.failed)} failed</span>
        </>
      )}
    </>
  );
}
