/** Tabs that are links: each has an address. */
import { useCurrentInView } from "./inview";

export type Tab = { id: string; name: string; to: string; count?: number | null };

export function Tabs({ tabs, current, label }: { tabs: readonly Tab[]; current: string; label: string }) {
  const row = useCurrentInView(current);
  return (
    <nav ref={row} class="tabs" aria-label={label}>
      {tabs.map(({ id, name, to, count }) => (
        <a key={id} href={to} aria-current={id === current ? "page" : undefined}>
          {name}
          {count != null && <span class="count">{count}</span>}
        </a>
      ))}
    </nav>
  );
}
