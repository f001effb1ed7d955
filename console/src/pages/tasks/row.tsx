/** One task in the list: the row opens it; the one thing most wanted stands beside it. */
import type { TaskRow } from "toolyard-client";
import { isTranslatable, messageIn, messageText } from "../../lib/messages";
import { route } from "../../lib/router";
import { revealHidden } from "../../lib/hidden-characters";
import { CopyButton, IconButton } from "../../ui/button";
import { StateChip } from "../../ui/chip";
import { MessageText } from "../../ui/message-text";
import { Ago, Elapsed } from "../../ui/time";
import { cancel, retry } from "./actions";
import { Limit } from "./limit";
import { callbackCount, isRunning, placeholder, subjectOf, titleOf } from "./types";
import { taskWords as words } from "./words";

export function Row({ task }: { task: TaskRow }) {
  const t = words();
  const count = callbackCount(task);
  const message = messageIn(task, "message");
  return (
    <div class={`rec-row tsk-row${isRunning(task) ? " runs" : ""}`}>
      <a class="rec-open tsk-open" data-row href={hrefOf(task.id)}>
        <span class="tsk-name cut" data-given title={`${revealHidden(titleOf(task))} · ${task.task_id}`}>
          <strong class="mono">{revealHidden(task.plugin)}</strong>{" "}
          <span class="faint">{revealHidden(subjectOf(task))}</span>
        </span>
        <span class="tsk-state">
          <StateChip state={task.state} />
        </span>
        <span class="tsk-duration tabular">
          <Elapsed from={task.created} to={isRunning(task) ? null : task.updated} />
        </span>
        <span class="tsk-life faint">
          <Ago at={task.updated} />
        </span>
        {isRunning(task) ? (
          <Limit task={task} />
        ) : task.message ? (
          <span
            class="tsk-message faint cut"
            title={messageText(message)}
            data-given={!isTranslatable(message) || undefined}
          >
            <MessageText message={message} />
          </span>
        ) : (
          <span class="tsk-message faint">{count ? t.callbacksN(count) : ""}</span>
        )}
      </a>
      <span class="tsk-side">
        <CopyButton text={placeholder(task)} label={t.copy} />
        {isRunning(task) ? (
          <IconButton
            label={`${t.cancel} ${titleOf(task)}`}
            sign="stop"
            kind="danger"
            onClick={() => cancel(task.id)}
          />
        ) : (
          <IconButton label={`${t.retry} ${titleOf(task)}`} sign="retry" onClick={() => retry(task.id)} />
        )}
      </span>
    </div>
  );
}

function hrefOf(id: string): string {
  const query = new URLSearchParams(route.value.query);
  query.set("task", id);
  return `/tasks?${query}`;
}
