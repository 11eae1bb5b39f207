/** What a page shows until it has read its data: that it is loading, or why it could not be loaded and what to do. */
import type { ComponentChildren } from "preact";
import type { Fault } from "../../reading";
import { Empty } from "../empty";

type Props = {
  /** As a sentence begins: "The requests". */
  what: string;
  fault: Fault | null;
  /** Where to go instead. */
  children?: ComponentChildren;
};

export function NotRead({ what, fault, children }: Props) {
  return fault ? (
    <Empty title={`${what} could not be loaded`}>
      {fault.what}. {fault.next} {children}
    </Empty>
  ) : (
    <p class="empty" role="status">
      Loading …
    </p>
  );
}
