/** A page about one thing: the way back to all of them, its name, state, actions and facts, then its sections. */
import type { ComponentChildren } from "preact";
import type { Reading } from "../../reading";
import { href } from "../../url";
import "../../styles/sheet.css";
import { NotRead } from "./notread";

type DetailProps<T> = {
  /** "request", and where all of them are: "Requests", at /requests. */
  one: string;
  all: string;
  reading: Reading<T>;
  children: (data: T) => ComponentChildren;
};

export function DetailPage<T>({ one, all, reading: { data, fault }, children }: DetailProps<T>) {
  if (data) return <>{children(data)}</>;
  const many = all.toLowerCase();
  return (
    <NotRead what={`This ${one}`} fault={fault}>
      <a href={href(`/${many}`)}>All {many}</a>
    </NotRead>
  );
}

type HeadProps = {
  all: string;
  title: string;
  badge: ComponentChildren;
  acts: ComponentChildren;
  facts: readonly Fact[];
  children?: ComponentChildren;
};

export function DetailHead({ all, title, badge, acts, facts, children }: HeadProps) {
  return (
    <header class="sheet-detail">
      <a href={href(`/${all.toLowerCase()}`)}>{all}</a>
      <div class="sheet-head">
        <h1>
          <bdi>{title}</bdi>
        </h1>
        {badge}
        <div class="sheet-acts">{acts}</div>
      </div>
      {children}
      <Facts facts={facts} />
    </header>
  );
}

/** A name and what holds; false where it does not apply. */
export type Fact = false | readonly [name: string, value: ComponentChildren];

export function Facts({ facts, label }: { facts: readonly Fact[]; label?: string }) {
  return (
    <dl class="sheet-facts" aria-label={label}>
      {facts.map(
        (fact) =>
          fact && (
            <div key={fact[0]}>
              <dt>
                <bdi>{fact[0]}</bdi>
              </dt>
              <dd>{fact[1]}</dd>
            </div>
          ),
      )}
    </dl>
  );
}
