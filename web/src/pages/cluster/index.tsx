import { Empty } from "../../parts/empty";

export default function Page() {
  return <Empty title="Cluster">This page is being built.</Empty>;
}
