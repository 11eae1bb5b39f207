/** Pipelines: nothing to show yet, and what will be. */
import { Empty } from "../../parts/empty";
import { href } from "../../url";

export default function PipelinesPage() {
  return (
    <Empty title="There are no pipelines yet">
      A params file with a train part and a benchmark part will show here: its stages, the runs of each, and the
      benchmark's results as a table. This version runs the train part alone: <code>onward submit params.yaml</code>, or{" "}
      <a href={href("/new")}>a new run</a>; its runs are in <a href={href("/")}>the list</a>.
    </Empty>
  );
}
