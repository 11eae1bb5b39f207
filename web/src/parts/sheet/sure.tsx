/** A button that asks once more before it acts. */
import { useState } from "preact/hooks";
import { complain } from "../toast";

type Props = { verb: string; label?: string; yes: string; no?: string; act: () => Promise<void> };

export function Sure({ verb, label, yes, no = "Keep running", act }: Props) {
  const [asked, setAsked] = useState(false);
  const sure = async () => {
    await act().catch(complain);
    setAsked(false);
  };
  return asked ? (
    <>
      <button type="button" class="danger" onClick={() => void sure()}>
        {yes}
      </button>{" "}
      <button type="button" class="quiet" onClick={() => setAsked(false)}>
        {no}
      </button>
    </>
  ) : (
    <button type="button" class="quiet danger" aria-label={label} onClick={() => setAsked(true)}>
      {verb}
    </button>
  );
}
