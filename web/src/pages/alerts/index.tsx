import { Empty } from "../../parts/empty";

export default function Page() {
  return <Empty title="Alerts">This page is being built.</Empty>;
}
