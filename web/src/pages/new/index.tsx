import { Empty } from "../../parts/empty";

export default function Page() {
  return <Empty title="New run">This page is being built.</Empty>;
}
