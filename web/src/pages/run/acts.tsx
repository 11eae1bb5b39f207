/** What can be asked of a run now. Each says in plain words what will happen before it does. */
import { useState } from "preact/hooks";
import { patch } from "../../api";
import { useKeys } from "../../keys";
import { Icon } from "../../parts/icon";
import { Menu } from "../../parts/menu";
import { complain, say } from "../../parts/toast";
import { flag, href, useParam } from "../../url";
import { CloneDialog } from "./clone";
import { CancelDialog, ResumeDialog, StopDialog } from "./ending";
import type { Overview } from "./feed";

const CLONE = flag();
type Asking = "" | "stop" | "cancel" | "resume" | "clone";

export function Acts({ told, again }: { told: Overview; again: () => void }) {
  const [cloning, setCloning] = useParam("clone", CLONE);
  const [asking, setAsking] = useState<Asking>("");
  const { actions, run } = told;
  const close = () => {
    setAsking("");
    setCloning(false);
  };
  const archive = async (archived: boolean): Promise<void> => {
    try {
      await patch("/api/v1/runs/{run_id}", { path: { run_id: run.id }, body: { archived } });
      say(
        archived ? `${run.name} is archived` : `${run.name} is back in the list`,
        archived ? { undo: () => void archive(false) } : {},
      );
      again();
    } catch (error) {
      complain(error);
    }
  };
  useKeys("Run", [
    ...(actions.stop ? [{ keys: "s", does: "Stop after a checkpoint", act: () => setAsking("stop") }] : []),
    ...(actions.cancel ? [{ keys: "k", does: "Cancel now", act: () => setAsking("cancel") }] : []),
    ...(actions.resume ? [{ keys: "r", does: "Resume", act: () => setAsking("resume") }] : []),
    ...(actions.clone ? [{ keys: "c", does: "Clone", act: () => setAsking("clone") }] : []),
  ]);
  return (
    <div class="run-acts">
      {actions.resume && (
        <button type="button" class={actions.resume_advised ? "primary" : ""} onClick={() => setAsking("resume")}>
          Resume
        </button>
      )}
      {actions.stop && (
        <button type="button" onClick={() => setAsking("stop")}>
          <Icon name="stop" /> Stop
        </button>
      )}
      {actions.cancel && (
        <button type="button" class="danger" onClick={() => setAsking("cancel")}>
          Cancel
        </button>
      )}
      {actions.clone && (
        <button type="button" onClick={() => setAsking("clone")}>
          <Icon name="copy" /> Clone
        </button>
      )}
      <Menu label={<Icon name="more" />} title="More" class="icon" end>
        {(shut) => (
          <ul class="run-more">
            <li>
              <a
                class="button quiet"
                href={href("/compare", { runs: [run.id, told.parent?.id].filter(Boolean).join(",") })}
              >
                <Icon name="compare" /> {told.parent ? "Compare with its parent" : "Compare"}
              </a>
            </li>
            <li>
              <button
                type="button"
                class="quiet"
                onClick={() => {
                  shut();
                  void archive(run.archived === null);
                }}
              >
                <Icon name="archive" /> {run.archived === null ? "Archive" : "Unarchive"}
              </button>
            </li>
          </ul>
        )}
      </Menu>
      {asking === "stop" && <StopDialog told={told} close={close} again={again} />}
      {asking === "cancel" && <CancelDialog told={told} close={close} again={again} />}
      {asking === "resume" && <ResumeDialog told={told} close={close} again={again} />}
      {(asking === "clone" || (cloning && actions.clone)) && <CloneDialog told={told} close={close} />}
    </div>
  );
}
