/** A task that goes on after its call: a chip with its time, and in its place the result when it comes. */
import type { TaskRow } from "toolyard-client";
import { formatDuration, now } from "../../lib/clock";
import { messageIn } from "../../lib/messages";
import { mediaOf } from "../../lib/media";
import { revealHidden } from "../../lib/hidden-characters";
import { stateWord } from "../../ui/chip";
import { Icon } from "../../ui/icon";
import { MessageText } from "../../ui/message-text";
import { MediaView } from "../../ui/media";
import { isRunning, taskKey, taskOf, type TaskName } from "./tasks";
import { words } from "./words";

export function TaskChip({ plugin, task_id }: TaskName) {
  const t = words();
  const task = taskOf({ plugin, task_id }).value;
  const name = t.task(plugin, task_id.slice(0, 8));
  if (task === "missing")
    return (
      <span class="chat-task">
        <Icon sign="warning" size={15} />
        {name} · {t.taskMissing}
      </span>
    );
  if (task === null || isRunning(task)) {
    return (
      <a
        class="chat-task running"
        href={`/tasks?task=${encodeURIComponent(task?.id ?? taskKey({ plugin, task_id }))}`}
        title={t.toTask}
      >
        <Icon sign="clock" size={15} />
        {name} · {stateWord("running")}{" "}
        {task && <span class="tabular">{formatDuration(Math.floor(now.value / 1000 - task.created))}</span>}
      </a>
    );
  }
  const parts = resultOf(task);
  const word = stateWord(task.state);
  return (
    <span class={`chat-task-result ${task.state === "succeeded" ? "good" : "bad"}`} role="group" aria-label={name}>
      <a class="chat-task-head" href={`/tasks?task=${encodeURIComponent(task.id)}`}>
        <Icon sign={task.state === "succeeded" ? "check" : "error"} size={15} />
        {name} · {word} · {formatDuration(task.updated - task.created)}
      </a>
      {parts.text ? (
        <span class="chat-task-text" data-given>
          {revealHidden(parts.text)}
        </span>
      ) : (
        task.message && (
          <span class="chat-task-text">
            <MessageText message={messageIn(task, "message")} />
          </span>
        )
      )}
      {parts.media.map((uri, at) => (
        <MediaView key={at} uri={uri} label={t.mediaFrom(plugin)} />
      ))}
    </span>
  );
}

function resultOf(task: TaskRow): { text: string; media: string[] } {
  const result = task.result as { content?: unknown; message?: unknown } | null;
  const content = Array.isArray(result?.content) ? (result.content as unknown[]) : [];
  const texts = content
    .map((part) => (part as { text?: unknown } | null)?.text)
    .filter((text): text is string => typeof text === "string");
  const message = typeof result?.message === "string" ? result.message : "";
  return { text: texts.join("\n") || message, media: mediaOf(content) };
}
