import { Empty } from "../../parts/empty";

export default function Tab(_: { id: string }) {
  return <Empty title="Charts">This tab is being built.</Empty>;
}
