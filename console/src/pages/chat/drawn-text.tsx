/** A text as the server drew it, with the tasks that it names. */
import { useLayoutEffect } from "preact/hooks";
import { Rendered } from "../../ui/rendered";
import { mount } from "../../ui/rendered/mount";
import { TaskChip } from "./task";
import { noteShown, splitPlaceholders, taskKey, type ShownTasks, type TaskName } from "./tasks";

interface Given {
  html: string;
  streaming: boolean;
  shownTasks: ShownTasks;
}

export function DrawnText({ html, streaming, shownTasks }: Given) {
  const mountTasks = (block: HTMLElement) => {
    for (const { host, name } of splitPlaceholders(block)) mount(host, <Placed name={name} shownTasks={shownTasks} />);
  };
  return <Rendered html={html} streaming={streaming} more={mountTasks} />;
}

function Placed({ name, shownTasks }: { name: TaskName; shownTasks: ShownTasks }) {
  const key = taskKey(name);
  useLayoutEffect(() => noteShown(shownTasks, key), [key, shownTasks]);
  return <TaskChip {...name} />;
}
