/** One conversation as it stands in this window: its messages, and how it becomes what the server has. */
import { signal, type Signal } from "@preact/signals";
import type { ApiError } from "../../lib/api";
import { merged } from "./merge";
import { completed, SETTINGS, settingsOf, type Message, type Settings, type Stored } from "./model";

/** A message in its own signal, so that a growing reply draws nothing but itself. */
export interface Cell {
  id: string;
  at: Signal<Message>;
}
export interface Talk {
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
  keep: (only?: "wait") => Promise<void>;
}

export function blankTalk(id: string, fresh: boolean): Talk {
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
    keep: () => Promise.resolve(),
  };
}

export function cell(message: Message): Cell {
  return { id: message.id, at: signal(message) };
}

export function messagesOf(talk: Talk): Message[] {
  return talk.cells.peek().map((one) => one.at.peek());
}

/** What the server has, together with what only this window has; cells that have not changed stay the very same. */
export function receive(talk: Talk, stored: Stored, ours: readonly Message[]): void {
  talk.version = stored.version;
  talk.title.value = stored.title;
  talk.model.value = stored.model;
  talk.settings.value = settingsOf(stored.settings);
  const known = new Map(talk.cells.peek().map((one) => [one.id, one]));
  talk.cells.value = merged(stored.messages.map(completed), ours).map((message) => {
    const one = known.get(message.id);
    if (!one) return cell(message);
    if (JSON.stringify(one.at.peek()) !== JSON.stringify(message)) one.at.value = message;
    return one;
  });
  talk.cursor = Math.max(talk.cursor, ...messagesOf(talk).map((message) => message.ended));
}
