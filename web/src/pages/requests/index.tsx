/** Requests: what other applications asked for through the queue, each with its run and the answer it got. */
import type { PageProps } from "../../routes";
import { List } from "./list";
import { One } from "./one";

export default function RequestsPage({ params }: PageProps) {
  return params.id ? <One key={params.id} id={params.id} /> : <List />;
}
