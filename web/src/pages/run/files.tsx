import { Empty } from "../../parts/empty";

export default function Tab(_: { id: string }) {
  return <Empty title="Files">This tab is being built.</Empty>;
}
