/** The actions on a task. */
import { api, toFailure, type Failure } from "../../lib/api";
import { failureIn } from "../../lib/envelope-text";
import { showToast } from "../../lib/toast";
import { taskPath } from "./types";
import { taskWords as words } from "./words";

const AT_ONCE = 4;

export async function cancel(id: string): Promise<void> {
  await api(`${taskPath(id)}/cancel`, { method: "POST" });
  showToast(words().cancelled, "plain");
}

export async function retry(id: string): Promise<void> {
  await callAgain(id);
  showToast(words().retried);
}

/** Calls them again, a few at a time; returns how many succeeded. */
export async function retryAll(ids: readonly string[]): Promise<number> {
  const left = [...ids];
  let done = 0;
  const work = async () => {
    for (let id = left.shift(); id !== undefined; id = left.shift())
      await callAgain(id).then(
        () => (done += 1),
        () => undefined,
      );
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
  return done;
}

async function callAgain(id: string): Promise<void> {
  const { error, context } = await api<{ error?: Failure; context: object }>(`${taskPath(id)}/retry`, {
    method: "POST",
  });
  if (error) throw toFailure(failureIn(error, context));
}

export async function markFailed(id: string, reason: string): Promise<void> {
  await api(`${taskPath(id)}/fail`, { body: { reason } });
  showToast(words().failed, "plain");
}

export async function pushAgain(id: string): Promise<void> {
  await api(`${taskPath(id)}/push`, { method: "POST" });
  showToast(words().sent, "plain");
}
