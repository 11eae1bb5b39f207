/** How wide a place on the page is, as it changes. */
import type { RefObject } from "preact";
import { useLayoutEffect, useState } from "preact/hooks";

export function useWidth(at: RefObject<HTMLElement | null>): number {
  const [width, setWidth] = useState(0);
  useLayoutEffect(() => {
    const place = at.current;
    if (!place) return;
    const watch = new ResizeObserver(() => setWidth(place.clientWidth));
    watch.observe(place);
    setWidth(place.clientWidth);
    return () => watch.disconnect();
  }, [at]);
  return width;
}
