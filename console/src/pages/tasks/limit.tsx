/** The share of its time limit that a task has used, or its own progress. */
import type { TaskRow } from "toolyard-client";
import { formatDuration, now } from "../../lib/clock";
import { revealHidden } from "../../lib/hidden-characters";
import { formatPercent } from "../../lib/language";
import { isRunning, progressOf } from "./types";
import { taskWords as words } from "./words";

export function Limit({ task }: { task: TaskRow }) {
  const t = words();
  if (!isRunning(task)) return null;
  const left = task.deadline - now.value / 1000;
  const used = Math.max(0, Math.min(1, 1 - left / Math.max(1, task.deadline - task.created)));
  const done = progressOf(task);
  return (
    <span class={`tsk-limit${left < 60 ? " soon" : ""}`}>
      <span
        class="tsk-bar"
        role="progressbar"
        aria-label={done === null ? t.limit : t.progress}
        aria-valuemin={0}
        aria-valuemax={100}
        aria-valuenow={Math.round((done ?? used) * 100)}
      >
        <b class={done === null ? "" : "done"} style={{ width: `${(done ?? used) * 100}%` }} />
      </span>
      <span class="faint tabular">
        {typeof task.progress?.text === "string"
          ? `${revealHidden(task.progress.text.slice(0, 60))} · `
          : done !== null
            ? `${formatPercent(done)} · `
            : ""}
        {left > 0 ? t.left(formatDuration(Math.ceil(left))) : t.over}
      </span>
    </span>
  );
}
