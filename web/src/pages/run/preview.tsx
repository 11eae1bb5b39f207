/** A small file looked at: text as text, pictures as pictures; nothing in it is ever run. */
import { useEffect, useState } from "preact/hooks";
import { inWords, problemOf } from "../../api";
import { bytes } from "../../format";
import { Icon } from "../../parts/icon";
import type { File } from "./files";

const PICTURES: Record<string, string> = {
  ...{ png: "image/png", jpg: "image/jpeg", jpeg: "image/jpeg", gif: "image/gif", webp: "image/webp" },
  ...{ bmp: "image/bmp", svg: "image/svg+xml" },
};
const TEXT = 512 << 10;
const PICTURE = 8 << 20;

type Shown = { text: string } | { picture: string } | { none: string };

/** What a file is, by its name and its bytes. Pure. */
export function shownOf(name: string, data: Uint8Array<ArrayBuffer>): Shown {
  const kind = PICTURES[name.split(".").at(-1)?.toLowerCase() ?? ""];
  if (kind) return { picture: `data:${kind};base64,${base64(data)}` };
  if (data.subarray(0, 8000).includes(0)) return { none: "This is not a text file: download it to open it." };
  return { text: new TextDecoder().decode(data) };
}

function base64(data: Uint8Array): string {
  let text = "";
  for (let at = 0; at < data.length; at += 8192) text += String.fromCharCode(...data.subarray(at, at + 8192));
  return btoa(text);
}

type Props = { address: string; file: File; close: () => void };

export function Preview({ address, file, close }: Props) {
  const name = file.path.split("/").at(-1) ?? file.path;
  const most = (name.split(".").at(-1)?.toLowerCase() ?? "") in PICTURES ? PICTURE : TEXT;
  const large = (file.bytes ?? 0) > most;
  const [shown, setShown] = useState<Shown | null>(
    large ? { none: `${bytes(file.bytes)} is too large to show here: download it.` } : null,
  );
  useEffect(() => {
    if (large) return;
    const gone = new AbortController();
    const read = async () => {
      const answer = await fetch(address, { credentials: "same-origin", signal: gone.signal });
      if (!answer.ok) throw await problemOf(answer);
      setShown(shownOf(name, new Uint8Array(await answer.arrayBuffer())));
    };
    read().catch((error: unknown) => {
      const words = inWords(error);
      if (words) setShown({ none: `${words.what}. ${words.next}` });
    });
    return () => gone.abort();
  }, [address, file.bytes]);
  return (
    <figure class="preview" aria-label={`Preview of ${name}`}>
      <figcaption>
        <strong class="clip">
          <bdi>{name}</bdi>
        </strong>
        <button type="button" class="quiet icon" aria-label="Close the preview" onClick={close}>
          <Icon name="close" />
        </button>
      </figcaption>
      {shown && "text" in shown && (
        // biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, and so do keys
        <pre class="evidence" role="group" tabIndex={0} aria-label="Content">
          {shown.text}
        </pre>
      )}
      {shown && "picture" in shown && <img src={shown.picture} alt={name} />}
      {shown && "none" in shown && <p class="muted">{shown.none}</p>}
    </figure>
  );
}
