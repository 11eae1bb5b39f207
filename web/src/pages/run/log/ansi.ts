/** A line of a terminal as spans: colours and weights stay, every other escape is taken out. Pure; text is only ever text. */

export type Style = {
  bold?: boolean;
  dim?: boolean;
  italic?: boolean;
  underline?: boolean;
  inverse?: boolean;
  /** 0 to 15 of the terminal's own colours, or any as CSS. */
  fore?: number | string;
  back?: number | string;
};
export type Span = { text: string; style: Style };

// CSI … letter, OSC … end, other escapes of two characters, and bare control characters
const ESCAPE =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what is looked for
  /\x1b\[([0-9;:?<=>]*)[ -/]*([@-~])|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?|\x1b[@-_]?|[\x00-\x08\x0b-\x1f\x7f]/g;

/** What a terminal would show at last: a progress bar overwrites itself after each carriage return. */
export function overwritten(line: string): string {
  const parts = line.replace(/\r+$/, "").split("\r");
  return parts.findLast((part) => part.length > 0) ?? "";
}

export function spans(line: string): Span[] {
  const text = overwritten(line);
  const made: Span[] = [];
  let style: Style = {};
  let from = 0;
  const put = (part: string) => {
    if (!part) return;
    const last = made.at(-1);
    if (last && last.style === style) last.text += part;
    else made.push({ text: part, style });
  };
  for (const found of text.matchAll(ESCAPE)) {
    put(text.slice(from, found.index));
    from = found.index + found[0].length;
    if (found[2] === "m") style = styled(style, found[1] ?? "");
  }
  put(text.slice(from));
  return made;
}

/** The line without its escapes. */
export function plain(line: string): string {
  return overwritten(line).replace(ESCAPE, "");
}

function styled(before: Style, codes: string): Style {
  const style = { ...before };
  const given = codes.split(/[;:]/).map((code) => (code === "" ? 0 : Number(code)));
  for (let at = 0; at < given.length; at++) {
    const code = given[at] as number;
    if (code === 0) for (const key of Object.keys(style) as (keyof Style)[]) delete style[key];
    else if (code === 1) style.bold = true;
    else if (code === 2) style.dim = true;
    else if (code === 3) style.italic = true;
    else if (code === 4) style.underline = true;
    else if (code === 7) style.inverse = true;
    else if (code === 22) {
      delete style.bold;
      delete style.dim;
    } else if (code === 23) delete style.italic;
    else if (code === 24) delete style.underline;
    else if (code === 27) delete style.inverse;
    else if (code === 39) delete style.fore;
    else if (code === 49) delete style.back;
    else if (code >= 30 && code <= 37) style.fore = code - 30;
    else if (code >= 40 && code <= 47) style.back = code - 40;
    else if (code >= 90 && code <= 97) style.fore = code - 82;
    else if (code >= 100 && code <= 107) style.back = code - 92;
    else if (code === 38 || code === 48) {
      const [colour, used] = further(given, at + 1);
      if (colour !== null) style[code === 38 ? "fore" : "back"] = colour;
      at += used;
    }
  }
  return style;
}

/** `5;n` of 256 colours, `2;r;g;b`: the colour, and how many numbers it took. */
function further(given: readonly number[], at: number): [number | string | null, number] {
  const byte = (value: number | undefined) => Math.max(0, Math.min(255, Math.round(value || 0)));
  if (given[at] === 5) return [of256(byte(given[at + 1])), 2];
  if (given[at] === 2) return [`rgb(${byte(given[at + 1])} ${byte(given[at + 2])} ${byte(given[at + 3])})`, 4];
  return [null, 0];
}

function of256(index: number): number | string {
  if (index < 16) return index;
  if (index >= 232) {
    const grey = 8 + 10 * (index - 232);
    return `rgb(${grey} ${grey} ${grey})`;
  }
  const level = (part: number) => (part ? 55 + 40 * part : 0);
  const cube = index - 16;
  return `rgb(${level(Math.floor(cube / 36))} ${level(Math.floor(cube / 6) % 6)} ${level(cube % 6)})`;
}
