/** Saves a conversation on the server: one request at a time, the newest state last. If another window was faster, both
 * versions are merged and saved again. */
import type { ConversationRow } from "toolyard-client";
import { api, ApiError } from "../../lib/api";
import { toStoredMessages } from "./stored-messages";
import type { StoredConversation } from "./model";
import { messagesOf, applyStored, type Conversation, type RowChanges } from "./conversation";

const TRIES = 4;

/** `only`: save nothing new, but wait for the request in flight. */
export function createSaver(conversation: Conversation): Pick<Conversation, "save" | "change"> {
  let line: Promise<void> = Promise.resolve();
  let waits = false;
  return {
    save: (only) => {
      if (only || waits || conversation.fresh) return line; // the one that waits will take what is there by then
      waits = true;
      line = line.then(() => {
        waits = false;
        return saveConversation(conversation);
      });
      return line;
    },
    change: (changes) => {
      if (conversation.fresh) return line;
      const changed = line.then(() => changeConversation(conversation, changes));
      line = changed.catch(() => undefined); // told to whoever asked; what comes next is not held up
      return changed;
    },
  };
}

async function changeConversation(conversation: Conversation, changes: RowChanges): Promise<void> {
  const row = await api<ConversationRow>(`/v1/conversations/${conversation.id}`, { method: "PATCH", body: changes });
  // If another window has changed it too, its messages are still to be read.
  if (row.version === conversation.version + 1) conversation.version = row.version;
}

async function saveConversation(conversation: Conversation): Promise<void> {
  for (let tries = 0; tries < TRIES; tries++) {
    try {
      const body = {
        title: conversation.title.peek(),
        model: conversation.model.peek(),
        settings: conversation.settings.peek(),
        messages: toStoredMessages(messagesOf(conversation)),
        leaf: conversation.cells.peek().at(-1)?.id ?? "",
        version: conversation.version,
      };
      const row = await api<ConversationRow>(`/v1/conversations/${conversation.id}`, { method: "PUT", body });
      conversation.version = row.version;
      conversation.unsaved.value = null;
      return;
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      if (error.status !== 409) return void (conversation.unsaved.value = error);
      const title = conversation.title.peek(),
        settings = conversation.settings.peek(),
        leaf = conversation.leaf.peek();
      const theirs = await api<StoredConversation>(`/v1/conversations/${conversation.id}`).catch(() => null);
      if (theirs)
        applyStored(
          conversation,
          { ...theirs, title: theirs.title || title, settings, leaf },
          messagesOf(conversation),
        );
      else conversation.version = 0;
    }
  }
}
