import { Empty } from "../../parts/empty";

export default function Page() {
  return <Empty title="Experiments">This page is being built.</Empty>;
}
