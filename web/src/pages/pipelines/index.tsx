import { Empty } from "../../parts/empty";

export default function Page() {
  return <Empty title="Pipelines">This page is being built.</Empty>;
}
