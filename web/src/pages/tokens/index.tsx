import { Empty } from "../../parts/empty";

export default function Page() {
  return <Empty title="Tokens">This page is being built.</Empty>;
}
