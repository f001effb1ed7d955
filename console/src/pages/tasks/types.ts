/** A task as the server describes it. */
import { mainArgument } from "../../lib/main-argument";

export interface Callback {
  at: number;
  result: "accepted" | "duplicate" | "refused";
  status?: number;
}
export interface Push {
  seq: number;
  at: number;
  clients: number;
  reached: number;
  again: boolean;
}
export interface Task {
  id: string;
  plugin: string;
  task_id: string;
  state: string;
  call_id: string;
  caller: string;
  created: number;
  updated: number;
  deadline: number;
  arguments: unknown;
  receipt: string;
  progress: Record<string, unknown>;
  result: unknown;
  message: string;
  audit: unknown[];
  chat?: string | null;
  pushes?: Push[];
  /** Only of one task that is asked for by itself: */
  callbacks?: Callback[];
  push?: { target: string | null; type: string; open: boolean } | null;
  chat_kept?: boolean;
}

export const taskPath = (id: string) => `/v1/tasks/${encodeURIComponent(id)}`;
export const isRunning = (task: Task) => task.state === "waiting_callback";
/** What a task is about; without an argument that says it, the plugin's own id of the task. */
export const subjectOf = (task: Task) => mainArgument(task.arguments) || task.task_id;
export const titleOf = (task: Task) => `${task.plugin} · ${subjectOf(task)}`;
/** The placeholder of the result in a reply. */
export const placeholder = (task: Task) => `{{VCP_ASYNC_RESULT::${task.plugin}::${task.task_id}}}`;

/** The number of callbacks: the one that ended the task, and later ones. */
export function callbackCount(task: Task): number {
  return (
    task.callbacks?.length ?? (task.audit?.length ?? 0) + (task.result !== null && task.result !== undefined ? 1 : 0)
  );
}

/** Its progress, 0..1, if it reports any. */
export function progressOf(task: Task): number | null {
  const { percent, done, total } = task.progress ?? {};
  const fraction =
    typeof percent === "number"
      ? percent / 100
      : typeof done !== "number"
        ? null
        : typeof total === "number" && total > 0
          ? done / total
          : done <= 1
            ? done
            : null;
  return fraction === null ? null : Math.max(0, Math.min(1, fraction));
}
