/** A ramp of colours from low to high that keeps its order without colour vision. Pure. */
const LIGHT = ["#3b2f80", "#2f6b8e", "#1f8f7c", "#6a9a2a", "#c08a00"];
const DARK = ["#8a80ea", "#4ba3dd", "#2cc49a", "#a6d65c", "#ffd84d"];

export function ramp(share: number | null, dark: boolean): string {
  const stops = dark ? DARK : LIGHT;
  if (share === null) return dark ? "#5a6270" : "#a9b0bb";
  const at = Math.max(0, Math.min(1, share)) * (stops.length - 1);
  const from = Math.min(stops.length - 2, Math.floor(at));
  const mix = (one: string, other: string, by: number) =>
    [1, 3, 5].map((place) => {
      const low = Number.parseInt(one.slice(place, place + 2), 16);
      const high = Number.parseInt(other.slice(place, place + 2), 16);
      return Math.round(low + (high - low) * by);
    });
  return `rgb(${mix(stops[from] as string, stops[from + 1] as string, at - from).join(" ")})`;
}
