/** A task as the server describes it. */
import type { TaskDetail, TaskRow } from "toolyard-client";
import { mainArgument } from "../../lib/main-argument";

export const taskPath = (id: string) => `/v1/tasks/${encodeURIComponent(id)}`;
export const isRunning = (task: TaskRow) => task.state === "waiting_callback";
/** What a task is about; without an argument that says it, the plugin's own id of the task. */
export const subjectOf = (task: TaskRow) => mainArgument(task.arguments) || task.task_id;
export const titleOf = (task: TaskRow) => `${task.plugin} · ${subjectOf(task)}`;
/** The placeholder of the result in a reply. */
export const placeholder = (task: TaskRow) => `{{VCP_ASYNC_RESULT::${task.plugin}::${task.task_id}}}`;

/** The number of callbacks: the one that ended the task, and later ones. */
export function callbackCount(task: TaskRow | TaskDetail): number {
  return (
    ("callbacks" in task ? task.callbacks.length : undefined) ??
    (task.audit?.length ?? 0) + (task.result !== null && task.result !== undefined ? 1 : 0)
  );
}

/** Its progress, 0..1, if it reports any. */
export function progressOf(task: TaskRow): number | null {
  const { done } = task.progress;
  return typeof done === "number" ? Math.max(0, Math.min(1, done)) : null;
}
