import { Empty } from "../../parts/empty";

export default function Page() {
  return <Empty title="Requests">This page is being built.</Empty>;
}
