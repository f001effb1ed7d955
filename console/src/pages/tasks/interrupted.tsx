/** Tasks that were interrupted when the server stopped, until they are retried or dismissed. */
import { useSignal } from "@preact/signals";
import type { TaskRow } from "toolyard-client";
import type { Page } from "../../lib/api";
import { useResource } from "../../lib/resource";
import { showToast } from "../../lib/toast";
import { Button } from "../../ui/button";
import { Notice } from "../../ui/state";
import { retryAll } from "./actions";
import { taskWords as words } from "./words";

const STORED = "toolyard.tasks.dismissed";
const MOST = 500;

export function Interrupted() {
  const t = words();
  const aside = useSignal<ReadonlySet<string>>(new Set(loadDismissed()));
  const interrupted = useResource<Page<TaskRow>>("/v1/tasks?state=interrupted&limit=200", ["task."]);
  const open = (interrupted.value?.data ?? []).filter((task) => !aside.value.has(task.id));
  if (!open.length) return null;
  const dismiss = () => {
    aside.value = new Set([...aside.value, ...open.map((task) => task.id)]);
    localStorage.setItem(STORED, JSON.stringify([...aside.value].slice(-MOST)));
  };
  const retry = async () => {
    showToast(t.retriedAll(await retryAll(open.map((task) => task.id)), open.length), "plain");
    dismiss();
  };
  return (
    <Notice
      tone="warn"
      action={
        <span class="row">
          <Button sign="retry" onClick={retry}>
            {t.retryAll}
          </Button>
          <Button kind="quiet" onClick={dismiss}>
            {t.dismiss}
          </Button>
        </span>
      }
    >
      {t.interrupted(open.length)}
    </Notice>
  );
}

function loadDismissed(): string[] {
  try {
    const stored: unknown = JSON.parse(localStorage.getItem(STORED) ?? "[]");
    return Array.isArray(stored) ? stored.filter((one): one is string => typeof one === "string") : [];
  } catch {
    return [];
  }
}
