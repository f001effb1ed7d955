/** The actions on a schedule. */
import { api } from "../../lib/api";
import { showToast } from "../../lib/toast";
import { schedulePath } from "./types";
import { scheduleWords as words } from "./words";

type Step = "allow" | "run" | "pause" | "resume" | "cancel";

export async function runAction(id: string, what: Step): Promise<void> {
  await api(`${schedulePath(id)}/${what}`, { method: "POST" });
  const t = words();
  const done = { allow: t.allowed, run: t.started, pause: t.pausedNow, resume: t.resumed, cancel: t.cancelled };
  showToast(done[what], "plain");
}
