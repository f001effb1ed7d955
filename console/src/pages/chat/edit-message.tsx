/** A message that is being written again. What it said stays in its own branch. */
import { useSignal } from "@preact/signals";
import { useLayoutEffect, useRef } from "preact/hooks";
import { Button } from "../../ui/button";
import { words } from "./words";
import { threadWords } from "./words-thread";

const withKeys = matchMedia("(pointer: fine)").matches && innerWidth >= 900;

export function EditMessage({
  text: before,
  busy,
  onSend,
  onClose,
}: {
  text: string;
  busy: boolean;
  onSend: (text: string) => void;
  onClose: () => void;
}) {
  const t = words(),
    own = threadWords();
  const box = useRef<HTMLTextAreaElement>(null);
  const text = useSignal(before);
  useLayoutEffect(() => {
    const node = box.current!;
    node.style.height = "0";
    node.style.height = `${node.scrollHeight + 2}px`;
  }, [text.value]);
  useLayoutEffect(() => {
    box.current!.focus();
    box.current!.setSelectionRange(before.length, before.length);
  }, [before]);
  const isReady = !busy && !!text.value.trim();
  const send = () => {
    if (isReady) onSend(text.value.trim());
  };
  return (
    <form
      class="chat-edit"
      onSubmit={(event) => {
        event.preventDefault();
        send();
      }}
      onKeyDown={(event) => {
        if (event.isComposing || event.keyCode === 229) return;
        if (event.key === "Escape") {
          event.stopPropagation();
          onClose();
        } else if (event.key === "Enter" && event.target === box.current) {
          if (!(event.ctrlKey || event.metaKey) && (event.shiftKey || !withKeys)) return;
          event.preventDefault();
          send();
        }
      }}
    >
      <textarea
        ref={box}
        rows={1}
        aria-label={own.editing}
        value={text.value}
        onInput={(event) => (text.value = event.currentTarget.value)}
      />
      <div class="row">
        <span class="faint grow">{own.editHelp}</span>
        <Button onClick={onClose}>{t.cancel}</Button>
        <Button kind="primary" type="submit" sign="send" disabled={!isReady}>
          {t.send}
        </Button>
      </div>
    </form>
  );
}
