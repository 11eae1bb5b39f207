/** How wide a place on the page is, as it changes; also of one that comes later. */
import { useLayoutEffect, useState } from "preact/hooks";

export function useWidth(): [number, (place: HTMLElement | null) => void] {
  const [place, setPlace] = useState<HTMLElement | null>(null);
  const [width, setWidth] = useState(0);
  useLayoutEffect(() => {
    if (!place) return;
    const watch = new ResizeObserver(() => setWidth(place.clientWidth));
    watch.observe(place);
    setWidth(place.clientWidth);
    return () => watch.disconnect();
  }, [place]);
  return [width, setPlace];
}
