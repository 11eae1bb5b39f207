/** A hand on a plot. Shift and drag, the middle button or the wheel sideways: pan. Control and wheel: zoom around the pointer. A finger reads. */
import type { Window } from "./axis";
import { moved, scaled } from "./scale";

export type Hand = {
  window: () => Window;
  log: boolean;
  enter: () => void;
  leave: () => void;
  /** Read here. */
  point: (left: number, top: number) => void;
  moving: (window: Window) => void;
  /** The hand has come to rest. */
  rest: (window: Window) => void;
};

const REST = 200; // ms without a turn of the wheel

export function attach(over: HTMLElement, signal: AbortSignal, hand: Hand): void {
  over.addEventListener("pointerenter", hand.enter, { signal });
  over.addEventListener("pointerleave", hand.leave, { signal });
  over.addEventListener("pointerdown", (event) => grip(over, event, hand), { signal });
  const finger = (event: TouchEvent) => {
    const [touch] = event.touches;
    if (!touch) return;
    const box = over.getBoundingClientRect();
    hand.enter();
    hand.point(touch.clientX - box.left, touch.clientY - box.top);
  };
  over.addEventListener("touchstart", finger, { signal, passive: true });
  over.addEventListener("touchmove", finger, { signal, passive: true });
  let timer: ReturnType<typeof setTimeout> | undefined;
  const wheel = (event: WheelEvent) => {
    const next = turned(over, event, hand);
    if (next === null) return; // the page scrolls
    event.preventDefault();
    hand.moving(next);
    clearTimeout(timer);
    timer = setTimeout(() => hand.rest(hand.window()), REST);
  };
  over.addEventListener("wheel", wheel, { signal, passive: false });
}

function turned(over: HTMLElement, event: WheelEvent, { window, log }: Hand): Window | null {
  if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) return moved(window(), event.deltaX / over.clientWidth, log);
  if (!event.ctrlKey && !event.metaKey) return null;
  const around = (event.clientX - over.getBoundingClientRect().left) / over.clientWidth;
  return scaled(window(), Math.exp(Math.max(-50, Math.min(50, event.deltaY)) / 150), around, log);
}

function grip(over: HTMLElement, event: PointerEvent, hand: Hand): void {
  if (event.pointerType === "touch" || !(event.button === 1 || (event.button === 0 && event.shiftKey))) return;
  event.preventDefault();
  const start = event.clientX;
  const from = hand.window();
  over.setPointerCapture(event.pointerId);
  over.classList.add("gripped");
  const stop = new AbortController();
  const { signal } = stop;
  const at = (now: PointerEvent) => moved(from, -(now.clientX - start) / over.clientWidth, hand.log);
  const end = (now: PointerEvent) => {
    stop.abort();
    over.classList.remove("gripped");
    hand.rest(at(now));
  };
  over.addEventListener("pointermove", (now) => hand.moving(at(now)), { signal });
  over.addEventListener("pointerup", end, { signal });
  over.addEventListener("pointercancel", end, { signal });
}
