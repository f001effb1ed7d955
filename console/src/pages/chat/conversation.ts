/** A conversation in this window: its messages, and how the stored state is merged into it. */
import { signal, type Signal } from "@preact/signals";
import type { ApiError } from "../../lib/api";
import { mergeMessages } from "./merge";
import { fromStored, SETTINGS, settingsOf, type Message, type Settings, type StoredConversation } from "./model";

/** A message in its own signal, so that a growing reply draws nothing but itself. */
export interface Cell {
  id: string;
  at: Signal<Message>;
}
export interface Conversation {
  id: string;
  version: number;
  /** Not kept anywhere before its first message. */
  fresh: boolean;
  state: Signal<"loading" | "ready" | "fault" | "missing">;
  error: Signal<ApiError | null>;
  title: Signal<string>;
  model: Signal<string>;
  settings: Signal<Settings>;
  cells: Signal<readonly Cell[]>;
  /** A reply is being written and read here. */
  running: Signal<boolean>;
  stopping: Signal<boolean>;
  unsaved: Signal<ApiError | null>;
  /** The newest event of the chat that was seen. */
  cursor: number;
  save: (only?: "wait") => Promise<void>;
}

export function blankConversation(id: string, fresh: boolean): Conversation {
  return {
    id,
    version: 0,
    fresh,
    state: signal(fresh ? "ready" : "loading"),
    error: signal(null),
    title: signal(""),
    model: signal(""),
    settings: signal(SETTINGS),
    cells: signal([]),
    running: signal(false),
    stopping: signal(false),
    unsaved: signal(null),
    cursor: 0,
    save: () => Promise.resolve(),
  };
}

export function newCell(message: Message): Cell {
  return { id: message.id, at: signal(message) };
}

export function messagesOf(conversation: Conversation): Message[] {
  return conversation.cells.peek().map((one) => one.at.peek());
}

/** Applies the stored conversation together with what only this window has; unchanged cells keep their identity. */
export function applyStored(conversation: Conversation, stored: StoredConversation, ours: readonly Message[]): void {
  conversation.version = stored.version;
  conversation.title.value = stored.title;
  conversation.model.value = stored.model;
  conversation.settings.value = settingsOf(stored.settings);
  const known = new Map(conversation.cells.peek().map((one) => [one.id, one]));
  conversation.cells.value = mergeMessages(stored.messages.map(fromStored), ours).map((message) => {
    const one = known.get(message.id);
    if (!one) return newCell(message);
    if (JSON.stringify(one.at.peek()) !== JSON.stringify(message)) one.at.value = message;
    return one;
  });
  conversation.cursor = Math.max(conversation.cursor, ...messagesOf(conversation).map((message) => message.ended));
}
