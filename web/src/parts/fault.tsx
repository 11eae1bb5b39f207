/** A part that breaks says so in its own place; the rest of the page goes on. */
import { Component, type ComponentChildren } from "preact";
import { Empty } from "./empty";

type Props = { children: ComponentChildren };

export class Boundary extends Component<Props, { fault: Error | null }> {
  override state: { fault: Error | null } = { fault: null };

  override componentDidCatch(fault: Error): void {
    console.error(fault);
    this.setState({ fault });
  }

  override render() {
    const { fault } = this.state;
    if (!fault) return this.props.children;
    return (
      <Empty title="This part of the page failed">
        Internal error: {fault.message}.{" "}
        <button type="button" onClick={() => this.setState({ fault: null })}>
          Try again
        </button>
      </Empty>
    );
  }
}
