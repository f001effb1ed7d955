/** Tasks that go on after their call, by the placeholder that stands for their result. Live by events; asked for now and
 * then too, for keys that hear no events. */
import { signal, type Signal } from "@preact/signals";
import type { TaskRow } from "toolyard-client";
import { api, ApiError } from "../../lib/api";
import { subscribe, liveConnection } from "../../lib/events";

/** A task as its placeholder names it. */
export interface TaskName {
  plugin: string;
  task_id: string;
}
export type KnownTask = TaskRow | "missing" | null;

const PLACEHOLDER = /\{\{VCP_ASYNC_RESULT::([^{}\s:]{1,100})::([^{}\s]{1,200})\}\}/;
const AGAIN_MS = 5000;
const known = new Map<string, Signal<KnownTask>>();

export function isRunning(task: KnownTask): boolean {
  return task === null || (task !== "missing" && /^(waiting|running|started|pending)/.test(task.state));
}

export function taskKey({ plugin, task_id }: TaskName): string {
  return `${plugin}::${task_id}`;
}

export function taskOf(name: TaskName): Signal<KnownTask> {
  const key = taskKey(name);
  let found = known.get(key);
  if (!found) {
    known.set(key, (found = signal<KnownTask>(null)));
    void refreshTask(key);
  }
  return found;
}

async function refreshTask(key: string): Promise<void> {
  const one = known.get(key)!;
  try {
    const fresh = await api<TaskRow>(`/v1/tasks/${encodeURIComponent(key)}`),
      had = one.peek();
    if (had === null || had === "missing" || fresh.updated >= had.updated) one.value = fresh; // answers may overtake each other
  } catch (error) {
    if (error instanceof ApiError && error.status !== 0) one.value = "missing";
  }
}

subscribe(["task."], (event) => {
  const key = `${String(event.data["plugin"])}::${String(event.data["task_id"])}`;
  for (const one of event.type === "gap" ? known.keys() : known.has(key) ? [key] : []) void refreshTask(one);
});
setInterval(() => {
  if (document.hidden) return;
  for (const [key, one] of known)
    if (isRunning(one.peek()) && (liveConnection.peek().state !== "live" || one.peek() === null)) void refreshTask(key);
}, AGAIN_MS);

/** The tasks that a call began. Calls of earlier versions only have the placeholders of their receipt. */
export function tasksOf({ tasks, text }: { tasks?: TaskName[]; text: string }): TaskName[] {
  return tasks ?? [...text.matchAll(new RegExp(PLACEHOLDER, "g"))].map(toName);
}

function toName(found: RegExpMatchArray): TaskName {
  return { plugin: found[1]!, task_id: found[2]! };
}

/** Every placeholder in a drawn block, outside of code, as a node for its chip. */
export function splitPlaceholders(block: HTMLElement): { name: TaskName; host: HTMLElement }[] {
  const walker = document.createTreeWalker(block, NodeFilter.SHOW_TEXT);
  const texts: globalThis.Text[] = [];
  while (walker.nextNode()) texts.push(walker.currentNode as globalThis.Text);
  const places: { name: TaskName; host: HTMLElement }[] = [];
  for (let node of texts) {
    if (node.parentElement?.closest("pre, code")) continue;
    for (let found = PLACEHOLDER.exec(node.data); found; found = PLACEHOLDER.exec(node.data)) {
      const place = node.splitText(found.index);
      node = place.splitText(found[0].length);
      const host = document.createElement("span");
      place.replaceWith(host);
      places.push({ name: toName(found), host });
    }
  }
  return places;
}

/** The tasks whose chips stand in the drawn text of a reply, each with their number. */
export type ShownTasks = Signal<ReadonlyMap<string, number>>;

/** Notes a chip in the drawn text; returns what notes its end. */
export function noteShown(shown: ShownTasks, key: string): () => void {
  const add = (step: 1 | -1) => {
    const next = new Map(shown.peek()).set(key, (shown.peek().get(key) ?? 0) + step);
    if (!next.get(key)) next.delete(key);
    shown.value = next;
  };
  add(1);
  return () => add(-1);
}
