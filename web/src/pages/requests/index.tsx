/** Requests: nothing to show yet, and what will be. */
import { Empty } from "../../parts/empty";
import { href } from "../../url";

export default function RequestsPage() {
  return (
    <Empty title="There are no requests yet">
      Trainings that another application asks for through a message queue will show here, each with its run and the
      answer it got. This version does not listen to a queue; runs that were submitted otherwise are in{" "}
      <a href={href("/")}>the list</a>.
    </Empty>
  );
}
