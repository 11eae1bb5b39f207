import { Empty } from "../../parts/empty";

export default function Page() {
  return <Empty title="Compare">This page is being built.</Empty>;
}
