/** The options of a chat: its instructions, its tools, what they may do without approval, and its replies. */
import { Button } from "../../ui/button";
import { Dialog } from "../../ui/dialog";
import { newDraft, type AssistantDraft } from "./assistants";
import type { Conversation } from "./conversation";
import { OptionFields } from "./option-fields";
import { words } from "./words";
import { composeWords } from "./words-compose";

export function Options({
  conversation,
  onClose,
  onSaveAs,
}: {
  conversation: Conversation;
  onClose: () => void;
  onSaveAs: (draft: AssistantDraft) => void;
}) {
  const t = words();
  const close = () => {
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
            sign="star"
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
      <OptionFields
        settings={conversation.settings.value}
        onChange={(change) => (conversation.settings.value = { ...conversation.settings.peek(), ...change })}
      />
    </Dialog>
  );
}
