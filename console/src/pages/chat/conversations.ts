/** The conversations that are open in this window. They outlive the page, so that a reply continues and is there when
 * the user comes back. */
import { api, ApiError } from "../../lib/api";
import { subscribe } from "../../lib/events";
import { createSaver } from "./saver";
import { newId, type StoredConversation } from "./model";
import { blankConversation, applyStored, type Conversation, type RowChanges } from "./conversation";
import { follow } from "./turn";

const MOST = 12;
const conversations = new Map<string, Conversation>();

function createConversation(id: string, fresh: boolean): Conversation {
  const conversation = blankConversation(id, fresh);
  Object.assign(conversation, createSaver(conversation));
  conversations.set(id, conversation);
  for (const [old, one] of conversations)
    if (conversations.size > MOST && old !== id && !one.running.peek()) conversations.delete(old);
  return conversation;
}

export function newConversation(): Conversation {
  return createConversation(newId(), true);
}

export function openConversation(id: string): Conversation {
  const known = conversations.get(id);
  if (known) return known;
  const conversation = createConversation(id, false);
  void loadConversation(conversation);
  return conversation;
}

export async function loadConversation(conversation: Conversation): Promise<void> {
  try {
    const stored = await api<StoredConversation>(`/v1/conversations/${encodeURIComponent(conversation.id)}`);
    // What was said or kept here meanwhile is newer; it meets what another window has when it is kept.
    if (
      conversation.state.peek() === "ready" &&
      (conversation.running.peek() || stored.version <= conversation.version)
    )
      return;
    applyStored(conversation, stored, []);
    conversation.state.value = "ready";
    void follow(conversation);
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    conversation.error.value = error;
    conversation.state.value = error.status === 404 ? "missing" : "fault";
  }
}

/** Changes a conversation of the list: here too, if it is open. */
export async function changeConversation(id: string, changes: RowChanges): Promise<void> {
  const conversation = conversations.get(id);
  if (!conversation || conversation.state.peek() !== "ready")
    return void (await api(`/v1/conversations/${encodeURIComponent(id)}`, { method: "PATCH", body: changes }));
  await conversation.change(changes);
  if (changes.title !== undefined) conversation.title.value = changes.title;
  if (changes.pinned !== undefined) conversation.pinned.value = changes.pinned;
}

export function closeConversation(id: string): void {
  conversations.delete(id);
}

/** Another window has changed a conversation that is open here. */
subscribe(["conversation.changed"], (event) => {
  for (const conversation of event.type === "gap"
    ? conversations.values()
    : [conversations.get(String(event.data["id"]))]) {
    if (!conversation || conversation.fresh || conversation.running.peek()) continue;
    const newer = () => event.type === "gap" || Number(event.data["version"]) > conversation.version;
    if (newer())
      void conversation.save("wait").then(() => {
        if (newer() && !conversation.running.peek()) void loadConversation(conversation);
      });
  }
});
