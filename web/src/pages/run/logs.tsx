import { Empty } from "../../parts/empty";

export default function Tab(_: { id: string }) {
  return <Empty title="Logs">This tab is being built.</Empty>;
}
