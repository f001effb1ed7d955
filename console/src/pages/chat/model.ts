/** The parts of a conversation. The server stores messages in this form, without interpreting them. */
import type { ChatUsage, ConversationRow, Mode } from "toolyard-client";
import { hasScope, type Failure } from "../../lib/api";
import type { Attachment } from "./attachments";
import type { TokenUse } from "./context-use";
import type { TaskName } from "./tasks";
import { REPLY_OPTIONS, type ReplyOptions } from "./reply-options";

export type CallState =
  "running" | "approval" | "success" | "partial" | "error" | "cancelled" | "scheduled" | "background";

export interface Thinking {
  kind: "thinking";
  text: string;
  started: number;
  ms: number;
}
export interface Text {
  kind: "text";
  text: string;
}
export interface Call {
  kind: "call";
  id: string;
  tool: string;
  command: string;
  summary: string;
  state: CallState;
  text: string;
  /** Of a text of the server itself, such as the reason why a call was refused. */
  text_code?: string;
  text_params?: object;
  started: number;
  ended: number | null;
  media: string[];
  left: number;
  approval: string | null;
  answered: string;
  /** The file that it asked to open. */
  canvas?: string;
  /** What goes on after it. */
  tasks?: TaskName[];
}
export type Piece = Thinking | Text | Call;

export interface Fault extends Failure {
  request: string;
}
/** Why a reply has to wait: the provider is asked again, another one instead, or the server is out of reach. */
export interface ProviderWait {
  kind: "retry" | "fallback" | "connection";
  provider: string;
  code: string;
  status: number | null;
  /** Seconds since 1970 at which the next attempt is made. */
  until: number;
  attempt: number;
  attempts: number;
  next: string;
}

export interface Message {
  id: string;
  /** The id of the message before it; empty: it begins the conversation. */
  parent: string;
  role: "user" | "assistant";
  at: number;
  /** The text of a user, and images as data URIs. */
  text: string;
  images: string[];
  attachments: Attachment[];
  pieces: Piece[];
  state: "running" | "done" | "stopped" | "failed";
  fault: Fault | null;
  /** Events of the chat before this reply: where to begin when it is followed again. */
  cursor: number;
  ended: number;
  model: string;
  usage: ChatUsage | null;
  /** The tokens of its last request. */
  use: TokenUse | null;
  rounds: number;
  gap: boolean;
  /** When something came last, in seconds since 1970, and why nothing comes while it runs. */
  heard: number;
  wait: ProviderWait | null;
}

export interface Settings extends ReplyOptions {
  instructions: string;
  tools: "all" | "none" | string[];
  mode: Mode;
  /** The id of the assistant that it was started with; empty: none. */
  assistant: string;
}
export interface StoredConversation extends Omit<ConversationRow, "messages"> {
  messages: (Partial<Message> & { id: string })[];
  settings: Partial<Settings> & { readOnly?: boolean };
}

export const SETTINGS: Settings = { instructions: "", tools: "all", mode: "ask", assistant: "", ...REPLY_OPTIONS };

/** Reads stored settings, including those of an older console, which had one other mode. */
export function settingsOf({ readOnly, ...storedSettings }: StoredConversation["settings"]): Settings {
  return { ...SETTINGS, ...(readOnly ? { mode: "read-only" } : {}), ...storedSettings };
}

/** The mode that holds: what a key may not choose is not asked for. */
export function modeOf({ mode }: Settings): Mode {
  return mode === "auto-safe" && !hasScope("approve") ? "ask" : mode;
}

export function newId(): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(12)), (byte) => byte.toString(36).padStart(2, "0"))
    .join("")
    .slice(0, 20);
}

export function blankMessage(role: Message["role"]): Message {
  return {
    id: newId(),
    parent: "",
    role,
    at: Date.now() / 1000,
    text: "",
    images: [],
    attachments: [],
    pieces: [],
    state: "done",
    fault: null,
    cursor: 0,
    ended: 0,
    model: "",
    usage: null,
    use: null,
    rounds: 0,
    gap: false,
    heard: 0,
    wait: null,
  };
}

export function userMessage(text: string, images: string[], attachments: Attachment[] = []): Message {
  return { ...blankMessage("user"), text, images, attachments };
}

export function assistantMessage(model: string, cursor: number): Message {
  return { ...blankMessage("assistant"), state: "running", model, cursor };
}

const THOUGHT = /^\s*(?:<think(?:ing)?>[\s\S]*?(?:<\/think(?:ing)?>|$)\s*)+/i;

/** The text of a reply without the reasoning that some models write before it. */
export function withoutThoughts(text: string): string {
  return text.replace(THOUGHT, "").trim();
}

/** The answer alone: no thinking, no tool work. */
export function answerOf(message: Message): string {
  if (message.role === "user") return message.text;
  return message.pieces
    .filter((piece): piece is Text => piece.kind === "text")
    .map((piece) => withoutThoughts(piece.text))
    .filter(Boolean)
    .join("\n\n");
}

/** The fault that an error of the server is, with what its translation needs. */
export function toFault(
  error: Partial<Omit<Fault, "code">> & { code?: string | null; toolyard?: Partial<Failure> },
): Fault {
  const { code, request = "" } = error;
  const { message = "", message_code, message_params } = error.toolyard ?? error; // beside a provider's own words
  return { code: code ?? "", message, ...(message_code ? { message_code, message_params } : {}), request };
}

/** Reads a stored message, with defaults for missing keys. */
export function fromStored(message: Partial<Message>): Message {
  return { ...blankMessage(message.role === "user" ? "user" : "assistant"), ...message };
}
