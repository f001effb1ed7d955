/** Edits that are not saved yet. They stay when another tab or page is opened, and the browser asks before it closes
 * or reloads with one. They are never stored: some hold keys. */
import { effect, signal } from "@preact/signals";

const drafts = signal<ReadonlyMap<string, unknown>>(new Map());

export function draftOf<T>(key: string): T | undefined {
  return drafts.value.get(key) as T | undefined;
}

/** The same without a subscription, after an await. */
export function peekDraft<T>(key: string): T | undefined {
  return drafts.peek().get(key) as T | undefined;
}

/** Keep an edit; undefined ends it. */
export function setDraft(key: string, value: unknown): void {
  const next = new Map(drafts.peek());
  if (value === undefined) next.delete(key);
  else next.set(key, value);
  drafts.value = next;
}

/** Give up the unsaved edits whose key begins so. */
export function dropDrafts(prefix: string): void {
  drafts.value = new Map([...drafts.peek()].filter(([key]) => !key.startsWith(prefix)));
}

/** True if there are unsaved edits whose key begins so. */
export function hasDrafts(prefix: string): boolean {
  return [...drafts.value.keys()].some((key) => key.startsWith(prefix));
}

const ask = (event: BeforeUnloadEvent) => event.preventDefault();
// Only while there is something to lose: a page with this listener is not kept for “back”.
effect(() => {
  if (drafts.value.size) addEventListener("beforeunload", ask);
  else removeEventListener("beforeunload", ask);
});
