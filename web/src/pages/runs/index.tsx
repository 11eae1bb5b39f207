import { Empty } from "../../parts/empty";

export default function Page() {
  return <Empty title="Runs">This page is being built.</Empty>;
}
