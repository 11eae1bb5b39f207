/** Pipelines: which there are; and one with its stages, the table of its benchmarks, what failed and its workers. */
import type { PageProps } from "../../routes";
import { List } from "./list";
import { One } from "./one";

export default function PipelinesPage({ params }: PageProps) {
  return params.name ? <One key={params.name} name={params.name} /> : <List />;
}
