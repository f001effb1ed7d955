/** The options of a chat: its instructions, its tools, what they may do without approval, and its replies. */
import { useEffect, useRef } from "preact/hooks";
import { Button } from "../../ui/button";
import { Dialog } from "../../ui/dialog";
import { newDraft, type AssistantDraft } from "./assistants";
import type { Conversation } from "./conversation";
import { OptionFields } from "./option-fields";
import { words } from "./words";
import { composeWords } from "./words-compose";

export function Options({
  conversation,
  atTools,
  onClose,
  onSaveAs,
}: {
  conversation: Conversation;
  /** It opens where the tools are chosen. */
  atTools: boolean;
  onClose: () => void;
  onSaveAs: (draft: AssistantDraft) => void;
}) {
  const t = words();
  const before = useRef(conversation.settings.peek().tools);
  const box = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (!atTools) return;
    const chosen = box.current?.querySelector<HTMLInputElement>("input[name=tools]:checked");
    chosen?.closest("fieldset")?.scrollIntoView();
    chosen?.focus({ preventScroll: true });
  }, [atTools]);
  const close = () => {
    // Somebody who went away from an empty selection has chosen nothing.
    if (Array.isArray(conversation.settings.peek().tools) && !conversation.settings.peek().tools.length)
      conversation.settings.value = { ...conversation.settings.peek(), tools: before.current };
    void conversation.save();
    onClose();
  };
  return (
    <Dialog
      title={t.optionsTitle}
      onClose={close}
      footer={
        <>
          <Button
            kind="quiet"
            sign="assistant"
            onClick={() => {
              void conversation.save();
              onSaveAs(newDraft(conversation.settings.peek(), conversation.model.peek()));
            }}
          >
            {composeWords().saveAs}
          </Button>
          <span class="grow" />
          <Button kind="primary" onClick={close}>
            {t.done}
          </Button>
        </>
      }
    >
      <div ref={box} class="chat-option-fields">
        <OptionFields
          settings={conversation.settings.value}
          onChange={(change) => (conversation.settings.value = { ...conversation.settings.peek(), ...change })}
        />
      </div>
    </Dialog>
  );
}
