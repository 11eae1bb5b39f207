/** Something that is shown once, to be copied. */
import { useRef, useState } from "preact/hooks";
import { Icon } from "./icon";

export function Secret({ value, label }: { value: string; label: string }) {
  const at = useRef<HTMLInputElement>(null);
  const [copied, setCopied] = useState(false);
  const copy = async () => {
    at.current?.select();
    try {
      await navigator.clipboard.writeText(value);
      setCopied(true);
    } catch {
      setCopied(false); // it is selected: Ctrl-C does it
    }
  };
  return (
    <div class="sheet-secret">
      <input ref={at} type="text" readOnly aria-label={label} value={value} onFocus={() => at.current?.select()} />
      <button type="button" onClick={() => void copy()}>
        <Icon name={copied ? "check" : "copy"} />
        {copied ? "Copied" : "Copy"}
      </button>
    </div>
  );
}
