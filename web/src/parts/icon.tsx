/** The few icons there are, drawn with one stroke in the colour of the text. */
const PATHS = {
  onward: "M3 3.5 7.5 8 3 12.5M8.5 3.5 13 8l-4.5 4.5",
  plus: "M8 3v10M3 8h10",
  key: "M9.5 6.5 14 2m-2 2 2 2M7 7a3 3 0 1 0 2 2.8A3 3 0 0 0 7 7Z",
  sun: "M8 5.2A2.8 2.8 0 1 0 8 10.8 2.8 2.8 0 0 0 8 5.2M8 1.5v1.2M8 13.3v1.2M1.5 8h1.2M13.3 8h1.2M3.4 3.4l.9.9M11.7 11.7l.9.9M3.4 12.6l.9-.9M11.7 4.3l.9-.9",
  moon: "M13 9.5A5.5 5.5 0 0 1 6.5 3 5.5 5.5 0 1 0 13 9.5Z",
  half: "M8 2.5a5.5 5.5 0 1 0 0 11 5.5 5.5 0 0 0 0-11Zm0 0v11M10 4.5v7M12 6v4",
  help: "M6 6a2 2 0 1 1 2.7 1.9c-.5.2-.7.5-.7 1.1v.5M8 11.8v.1M8 1.8a6.2 6.2 0 1 0 0 12.4A6.2 6.2 0 0 0 8 1.8Z",
  search: "M7 2.5a4.5 4.5 0 1 0 0 9 4.5 4.5 0 0 0 0-9Zm3.3 7.8L14 14",
  close: "M4 4l8 8M12 4l-8 8",
  up: "M4 10l4-4 4 4",
  down: "M4 6l4 4 4-4",
  right: "M6 4l4 4-4 4",
  columns: "M2.5 3h11v10h-11ZM6.2 3v10M9.8 3v10",
  group: "M2.5 4h11M5 8h8.5M5 12h8.5",
  view: "M4 2.5h8v11l-4-3-4 3Z",
  share: "M6.5 9.5l3-3M7 5l1.5-1.5a2.5 2.5 0 0 1 4 3.5L11 8.5M9 11l-1.5 1.5a2.5 2.5 0 0 1-4-3.5L5 7.5",
  stop: "M4 4h8v8H4Z",
  tag: "M2.5 2.5h5l6 6-5 5-6-6ZM5.2 5.2v.1",
  compare: "M2.5 12.5 6 7l3 3 4.5-6.5",
  archive: "M2.5 3h11v3h-11ZM3.5 6v7h9V6M6.5 8.5h3",
  more: "M3.5 8v.1M8 8v.1M12.5 8v.1",
  check: "M3 8.5 6.5 12 13 4.5",
  copy: "M5.5 5.5h8v8h-8ZM10.5 5.5v-3h-8v8h3",
  download: "M8 2.5v8M4.5 7.5 8 11l3.5-3.5M3 13.5h10",
  reload: "M13 8a5 5 0 1 1-1.5-3.5M13 2.5v3h-3",
} as const;

export type IconName = keyof typeof PATHS;

export function Icon({ name }: { name: IconName }) {
  return (
    <svg class="icon" viewBox="0 0 16 16" width="16" height="16" aria-hidden="true">
      <path d={PATHS[name]} />
    </svg>
  );
}
