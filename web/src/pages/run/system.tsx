import { Empty } from "../../parts/empty";

export default function Tab(_: { id: string }) {
  return <Empty title="System">This tab is being built.</Empty>;
}
