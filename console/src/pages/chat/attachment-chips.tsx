/** Attached files as chips with name and size; a press opens the text that the model gets. */
import { useSignal } from "@preact/signals";
import { formatBytes } from "../../lib/clock";
import { IconButton } from "../../ui/button";
import { Code } from "../../ui/code";
import { Dialog } from "../../ui/dialog";
import { Icon } from "../../ui/icon";
import { Notice } from "../../ui/state";
import type { Attachment } from "./attachments";
import { composeWords } from "./words-compose";

export function AttachmentChips({
  attachments,
  onRemove,
}: {
  attachments: readonly Attachment[];
  onRemove?: (at: number) => void;
}) {
  const t = composeWords();
  const open = useSignal<Attachment | null>(null);
  if (!attachments.length) return null;
  return (
    <ul class="chat-files">
      {attachments.map((one, at) => (
        <li key={`${at} ${one.name}`} class={`chat-file${one.truncated ? " part" : ""}`}>
          <button
            type="button"
            class="chat-file-open"
            aria-label={t.openFile(one.name)}
            title={one.name}
            data-given
            onClick={() => (open.value = one)}
          >
            <Icon sign="file" size={16} />
            <span class="chat-file-name">
              <bdi class="cut">{one.name.split("/").pop()}</bdi>
              <span class="faint cut">{describe(one)}</span>
            </span>
          </button>
          {onRemove && <IconButton label={t.removeFile(one.name)} sign="close" onClick={() => onRemove(at)} />}
        </li>
      ))}
      {open.value && (
        <Dialog title={open.value.name} given side onClose={() => (open.value = null)}>
          <p class="quiet">{describe(open.value)}</p>
          {open.value.truncated && <Notice tone="warn">{t.onlyBeginning(open.value.text.length)}</Notice>}
          <div data-given>
            <Code text={open.value.text} label={open.value.name} tall />
          </div>
        </Dialog>
      )}
    </ul>
  );
}

function describe({ size, pages, truncated, text }: Attachment): string {
  const t = composeWords();
  return [formatBytes(size), pages ? t.pages(pages) : "", truncated ? t.beginning(text.length) : ""]
    .filter(Boolean)
    .join(" · ");
}
