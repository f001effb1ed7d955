/** What the server tells of a task. */
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
/** What a reply carries in the place of the result. */
export const placeholder = (task: Task) => `{{VCP_ASYNC_RESULT::${task.plugin}::${task.task_id}}}`;

/** How many callbacks came: the one that ended it, and those that came after. */
export function callbackCount(task: Task): number {
  return (
    task.callbacks?.length ?? (task.audit?.length ?? 0) + (task.result !== null && task.result !== undefined ? 1 : 0)
  );
}

/** How far it is, 0..1, if it has said so. */
export function progressOf(task: Task): number | null {
  const { percent, done, total } = task.progress ?? {};
  const said =
    typeof percent === "number"
      ? percent / 100
      : typeof done !== "number"
        ? null
        : typeof total === "number" && total > 0
          ? done / total
          : done <= 1
            ? done
            : null;
  return said === null ? null : Math.max(0, Math.min(1, said));
}
