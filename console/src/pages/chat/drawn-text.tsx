/** A text as the server drew it, with the tasks that it names. */
import { Rendered } from "../../ui/rendered";
import { mount } from "../../ui/rendered/mount";
import { TaskChip } from "./task";
import { splitPlaceholders } from "./tasks";

export function DrawnText({ html, streaming }: { html: string; streaming: boolean }) {
  return <Rendered html={html} streaming={streaming} more={mountTaskChips} />;
}

function mountTaskChips(block: HTMLElement): void {
  for (const { host, plugin, id } of splitPlaceholders(block)) mount(host, <TaskChip plugin={plugin} id={id} />);
}
