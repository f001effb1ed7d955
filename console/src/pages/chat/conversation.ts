/** A conversation in this window: its messages, and how the stored state is merged into it. */
import { batch, computed, signal, type ReadonlySignal, type Signal } from "@preact/signals";
import type { ConversationRow } from "toolyard-client";
import type { ApiError } from "../../lib/api";
import { linkMessages, newestLeaf, pathTo, type Node } from "./branches";
import { mergeMessages } from "./merge";
import { fromStored, SETTINGS, settingsOf, type Message, type Settings, type StoredConversation } from "./model";

/** A message in its own signal, so that a growing reply draws nothing but itself. */
export interface Cell extends Node {
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
  pinned: Signal<boolean>;
  /** The messages of all branches, in the order in which they were written. */
  all: Signal<readonly Cell[]>;
  /** A message of the branch in view, usually the last. */
  leaf: Signal<string>;
  /** The messages in view. */
  cells: ReadonlySignal<readonly Cell[]>;
  /** Where each branch was left. */
  left: Map<string, string>;
  /** A reply is being written and read here. */
  running: Signal<boolean>;
  stopping: Signal<boolean>;
  unsaved: Signal<ApiError | null>;
  /** The newest event of the chat that was seen. */
  cursor: number;
  save: (only?: "wait") => Promise<void>;
  /** Changes a part of what is stored beside the messages. */
  change: (changes: RowChanges) => Promise<void>;
}
export type RowChanges = Partial<Pick<ConversationRow, "title" | "pinned" | "leaf">>;

export function blankConversation(id: string, fresh: boolean): Conversation {
  const all = signal<readonly Cell[]>([]);
  const leaf = signal("");
  return {
    id,
    version: 0,
    fresh,
    state: signal(fresh ? "ready" : "loading"),
    error: signal(null),
    title: signal(""),
    model: signal(""),
    settings: signal(SETTINGS),
    pinned: signal(false),
    all,
    leaf,
    cells: computed(() => pathTo(all.value, newestLeaf(all.value, leaf.value))),
    left: new Map<string, string>(),
    running: signal(false),
    stopping: signal(false),
    unsaved: signal(null),
    cursor: 0,
    save: () => Promise.resolve(),
    change: () => Promise.resolve(),
  };
}

export function newCell(message: Message): Cell {
  return { id: message.id, parent: message.parent, at: signal(message) };
}

/** Adds a message to the branch that its parent ends, or begins another one, and shows it. */
export function addCell(conversation: Conversation, message: Message): Cell {
  const cell = newCell(message);
  batch(() => {
    conversation.all.value = [...conversation.all.peek(), cell];
    conversation.leaf.value = cell.id;
  });
  return cell;
}

/** The messages of all branches. */
export function messagesOf(conversation: Conversation): Message[] {
  return conversation.all.peek().map((one) => one.at.peek());
}

/** Shows the branch through a message, at the place where it was left. */
export function showBranch(conversation: Conversation, id: string): void {
  const { all, cells, leaf, left } = conversation;
  const end = cells.peek().at(-1)?.id ?? "";
  for (const cell of cells.peek()) left.set(cell.id, end);
  leaf.value = newestLeaf(all.peek(), left.get(id) ?? id);
}

/** The reply that is being written, in whatever branch. */
export function runningReply(conversation: Conversation): Cell | undefined {
  return conversation.all.peek().findLast((cell) => cell.at.peek().state === "running");
}

/** Applies the stored conversation together with what only this window has; unchanged cells keep their identity. */
export function applyStored(conversation: Conversation, stored: StoredConversation, ours: readonly Message[]): void {
  conversation.version = stored.version;
  conversation.title.value = stored.title;
  conversation.model.value = stored.model;
  conversation.settings.value = settingsOf(stored.settings);
  conversation.pinned.value = stored.pinned;
  conversation.leaf.value = stored.leaf;
  const known = new Map(conversation.all.peek().map((one) => [one.id, one]));
  conversation.all.value = mergeMessages(linkMessages(stored.messages).map(fromStored), ours).map((message) => {
    const one = known.get(message.id);
    if (!one || one.parent !== message.parent) return newCell(message);
    if (JSON.stringify(one.at.peek()) !== JSON.stringify(message)) one.at.value = message;
    return one;
  });
  conversation.cursor = Math.max(conversation.cursor, ...messagesOf(conversation).map((message) => message.ended));
}
