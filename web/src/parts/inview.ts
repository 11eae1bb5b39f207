/** Of links in a row that is wider than the screen, the one to where one is stays in sight. */
import type { RefObject } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";

const MARGIN = 24; // px: enough of the next one to see that there is more

export function useCurrentInView(current: string): RefObject<HTMLElement | null> {
  const row = useRef<HTMLElement>(null);
  useLayoutEffect(() => {
    const at = row.current;
    const link = at?.querySelector<HTMLElement>("[aria-current]");
    if (!at || !link || at.scrollWidth <= at.clientWidth) return;
    const left = link.getBoundingClientRect().left - at.getBoundingClientRect().left + at.scrollLeft;
    if (left < at.scrollLeft) at.scrollLeft = left - MARGIN;
    else if (left + link.offsetWidth > at.scrollLeft + at.clientWidth)
      at.scrollLeft = left + link.offsetWidth + MARGIN - at.clientWidth;
  }, [current]);
  return row;
}
