/** Saves a conversation on the server: one request at a time, the newest state last. If another window was faster, both
 * versions are merged and saved again. */
import { api, ApiError } from "../../lib/api";
import { toStoredMessages } from "./stored-messages";
import type { Row, StoredConversation } from "./model";
import { messagesOf, applyStored, type Conversation } from "./conversation";

const TRIES = 4;

/** `only`: save nothing new, but wait for the request in flight. */
export function createSaver(conversation: Conversation): (only?: "wait") => Promise<void> {
  let line: Promise<void> = Promise.resolve();
  let waits = false;
  return (only) => {
    if (only || waits || conversation.fresh) return line; // the one that waits will take what is there by then
    waits = true;
    line = line.then(() => {
      waits = false;
      return saveConversation(conversation);
    });
    return line;
  };
}

async function saveConversation(conversation: Conversation): Promise<void> {
  for (let tries = 0; tries < TRIES; tries++) {
    try {
      const body = {
        title: conversation.title.peek(),
        model: conversation.model.peek(),
        settings: conversation.settings.peek(),
        messages: toStoredMessages(messagesOf(conversation)),
        version: conversation.version,
      };
      const row = await api<Row>(`/v1/conversations/${conversation.id}`, { method: "PUT", body });
      conversation.version = row.version;
      conversation.unsaved.value = null;
      return;
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      if (error.status !== 409) return void (conversation.unsaved.value = error);
      const { title, settings } = { title: conversation.title.peek(), settings: conversation.settings.peek() };
      const theirs = await api<StoredConversation>(`/v1/conversations/${conversation.id}`).catch(() => null);
      if (theirs)
        applyStored(conversation, { ...theirs, title: title || theirs.title, settings }, messagesOf(conversation));
      else conversation.version = 0;
    }
  }
}
