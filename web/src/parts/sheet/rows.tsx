/** A plain table: its columns, its rows, and what is shown if there are none. */
import { type ComponentChildren, toChildArray } from "preact";

type Column = string | { name: ComponentChildren; right?: boolean; hidden?: boolean };
type Props = { columns: readonly Column[]; none?: ComponentChildren; children: ComponentChildren };

/** The column of buttons, whose title only screen readers say. */
export const ACTIONS: Column = { name: "Actions", hidden: true };

export function Rows({ columns, none, children }: Props) {
  if (none && !toChildArray(children).length) return <>{none}</>;
  return (
    <div class="sheet-scroll">
      <table>
        <thead>
          <tr>
            {columns.map((column, at) => {
              const { name, right, hidden } = typeof column === "string" ? { name: column } : column;
              return (
                <th key={at} scope="col" class={right ? "right" : undefined}>
                  {hidden ? <span class="hidden">{name}</span> : name}
                </th>
              );
            })}
          </tr>
        </thead>
        <tbody>{children}</tbody>
      </table>
    </div>
  );
}
