/** A cluster's picture, read again while it is looked at. The server asks the scheduler seldom; asking the server is cheap. */
import { useEffect, useState } from "preact/hooks";
import { type Got, get, inWords } from "../../api";
import type { Picture } from "./words";

const EVERY = 10_000; // ms

export type Known = Got<"/api/v1/clusters">["clusters"][number];
export type Fault = { what: string; next: string };

export function useClusters(): { clusters: readonly Known[] | null; fault: Fault | null } {
  const [clusters, setClusters] = useState<readonly Known[] | null>(null);
  const [fault, setFault] = useState<Fault | null>(null);
  useEffect(() => {
    const gone = new AbortController();
    get("/api/v1/clusters", { signal: gone.signal })
      .then((told) => setClusters(told.clusters))
      .catch((error: unknown) => setFault(inWords(error)));
    return () => gone.abort();
  }, []);
  return { clusters, fault };
}

/** `readAt`: when the scheduler told it, in this browser's unix seconds. */
export type Seen = { picture: Picture | null; readAt: number | null; fault: Fault | null; again: () => void };

export function usePicture(name: string | null): Seen {
  const [seen, setSeen] = useState<Omit<Seen, "again"> & { name: string | null }>({ name: null, ...NOTHING });
  const [round, setRound] = useState(0);
  useEffect(() => {
    if (name === null) return;
    const gone = new AbortController();
    let timer: ReturnType<typeof setTimeout> | undefined;
    const look = async () => {
      if (!document.hidden) {
        try {
          const picture = await get("/api/v1/clusters/{name}", { path: { name }, signal: gone.signal });
          const heard = picture.taken_at !== null;
          const fault = heard ? null : { what: picture.trouble, next: "" };
          setSeen({
            name,
            picture: heard ? picture : null,
            readAt: heard ? Date.now() / 1000 - picture.age : null,
            fault,
          });
        } catch (error) {
          const fault = inWords(error);
          if (fault) setSeen((before) => ({ ...(before.name === name ? before : NOTHING), name, fault }));
        }
      }
      if (!gone.signal.aborted) timer = setTimeout(look, EVERY);
    };
    const back = () => {
      if (document.hidden) return;
      clearTimeout(timer);
      void look();
    };
    document.addEventListener("visibilitychange", back);
    void look();
    return () => {
      gone.abort();
      clearTimeout(timer);
      document.removeEventListener("visibilitychange", back);
    };
  }, [name, round]);
  const mine = seen.name === name ? seen : { ...NOTHING };
  return { ...mine, again: () => setRound((count) => count + 1) };
}

const NOTHING = { picture: null, readAt: null, fault: null };
