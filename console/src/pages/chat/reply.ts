/** Applies the chunks of a stream to a message. The same chunks give the same message, so a reply
 * that is read again from its beginning ends as it would have. */
import type { ChatUsage, SpecialAction } from "toolyard-client";
import { mediaOf } from "../../lib/media";
import { canvasIn } from "../../lib/special-action";
import { toTokenUse } from "./context-use";
import {
  toFault,
  type Call,
  type CallState,
  type Message,
  type Piece,
  type ProviderWait,
  type Text,
  type Thinking,
} from "./model";
import type { TaskName } from "./tasks";

interface ToolEvent extends SpecialAction {
  type?: string;
  id?: string;
  call_id?: string;
  tool?: string;
  arguments?: Record<string, unknown>;
  state?: string;
  text?: string;
  time_ms?: number;
  media?: unknown[];
  text_code?: string;
  text_params?: object;
  reason?: string;
  media_left_out?: number;
  tasks?: TaskName[];
  at?: number;
  provider?: string;
  code?: string;
  status?: number | null;
  pause_s?: number;
  attempt?: number;
  attempts?: number;
  next?: string;
  usage?: ChatUsage;
  offer?: { tools: number; tokens: number };
}
export interface Chunk {
  choices?: {
    delta?: { content?: string | null; reasoning_content?: string | null; reasoning?: string | null };
    finish_reason?: string | null;
  }[];
  usage?: ChatUsage | null;
  toolyard?: ToolEvent;
  error?: { message?: string; message_code?: string; message_params?: object; code?: string | null };
}

const SUMMARY = 240;

export function applyChunk(message: Message, chunk: Chunk, read: number): Message {
  const now = Math.min(read, (chunk.toolyard?.at ?? Infinity) * 1000); // what is read again happened earlier
  if (chunk.error)
    return {
      ...message,
      state: "failed",
      fault: toFault(chunk.error),
    };
  const wait = readWait(chunk.toolyard, now);
  let next = {
    ...message,
    wait,
    ...(wait ? {} : { heard: now / 1000 }),
    ...(chunk.usage ? { usage: chunk.usage } : {}),
  };
  const delta = chunk.choices?.[0]?.delta;
  const thought = delta?.reasoning_content ?? delta?.reasoning;
  if (thought) next = { ...next, pieces: appendThinking(next.pieces, thought, now) };
  if (delta?.content) next = { ...next, pieces: appendText(next.pieces, delta.content) };
  return chunk.toolyard ? applyToolEvent(next, chunk.toolyard, now) : next;
}

/** A wait lasts until anything else comes. */
function readWait(event: ToolEvent | undefined, now: number): ProviderWait | null {
  if (event?.type !== "provider.retry" && event?.type !== "provider.fallback") return null;
  return {
    kind: event.type === "provider.retry" ? "retry" : "fallback",
    provider: event.provider ?? "",
    code: event.code ?? "",
    status: typeof event.status === "number" ? event.status : null,
    until: now / 1000 + (event.pause_s ?? 0),
    attempt: event.attempt ?? 0,
    attempts: event.attempts ?? 0,
    next: event.next ?? "",
  };
}

function appendThinking(pieces: Piece[], more: string, now: number): Piece[] {
  const last = pieces[pieces.length - 1];
  if (last?.kind !== "thinking")
    return [...pieces, { kind: "thinking", text: more, started: now, ms: 0 } satisfies Thinking];
  return [...pieces.slice(0, -1), { ...last, text: last.text + more, ms: now - last.started }];
}

function appendText(pieces: Piece[], more: string): Piece[] {
  const last = pieces[pieces.length - 1];
  if (last?.kind === "text") return [...pieces.slice(0, -1), { ...last, text: last.text + more }];
  return more.trim() ? [...pieces, { kind: "text", text: more } satisfies Text] : pieces;
}

function applyToolEvent(message: Message, toolEvent: ToolEvent, now: number): Message {
  if (toolEvent.type === "interrupted") return { ...message, state: "stopped" };
  if (toolEvent.type === "gap") return { ...message, gap: true };
  if (toolEvent.type === "round.ended") return { ...message, use: toTokenUse(toolEvent.usage, toolEvent.offer) };
  if (toolEvent.type === "call.started")
    return {
      ...message,
      rounds: message.rounds + (isInSameRound(message.pieces) ? 0 : 1),
      pieces: [...message.pieces, newCall(toolEvent, now)],
    };
  if (toolEvent.type === "approval.requested")
    return updateCalls(
      message,
      (one) => one.id === toolEvent.call_id,
      (one) => ({ ...one, state: "approval", approval: toolEvent.id ?? null }),
    );
  if (toolEvent.type !== "call.finished") return message;
  const state = toolEvent.state as CallState;
  return updateCalls(
    message,
    (one) => one.ended === null && (toolEvent.id ? one.id === toolEvent.id : one.tool === toolEvent.tool),
    (one) => ({
      ...one,
      state,
      text: toolEvent.text ?? "",
      ...(toolEvent.text_code && { text_code: toolEvent.text_code, text_params: toolEvent.text_params }),
      ended: one.started + (toolEvent.time_ms || now - one.started * 1000) / 1000,
      media: mediaOf(toolEvent.media ?? []),
      left: toolEvent.media_left_out ?? 0,
      ...(canvasIn(toolEvent) && { canvas: canvasIn(toolEvent) }),
      answered: one.answered || (toolEvent.reason === "DENIED" ? "denied" : ""), // also by somebody elsewhere
      ...(toolEvent.tasks && { tasks: toolEvent.tasks }),
    }),
  );
}

/** True if the previous pieces are calls of the same round. */
function isInSameRound(pieces: readonly Piece[]): boolean {
  const last = pieces[pieces.length - 1];
  return last?.kind === "call" && last.ended === null;
}

function updateCalls(message: Message, which: (call: Call) => boolean, how: (call: Call) => Call): Message {
  return {
    ...message,
    pieces: message.pieces.map((piece) => (piece.kind === "call" && which(piece) ? how(piece) : piece)),
  };
}

function newCall(toolEvent: ToolEvent, now: number): Call {
  const given = toolEvent.arguments ?? {};
  const command = typeof given["command"] === "string" ? given["command"] : "";
  return {
    kind: "call",
    id: toolEvent.id ?? "",
    tool: toolEvent.tool ?? "",
    command: command.length <= 40 && !/\s/.test(command) ? command : "",
    summary: summarizeArguments(given),
    state: "running",
    text: "",
    started: now / 1000,
    ended: null,
    media: [],
    left: 0,
    approval: null,
    answered: "",
  };
}

/** A call of which nothing is known but that it waits for approval. */
export function restoreCall(asked: { id: string; call_id: string; tool: string; summary: string }, now: number): Call {
  const call = newCall({ id: asked.call_id, tool: asked.tool }, now);
  return { ...call, state: "approval", approval: asked.id, summary: asked.summary.slice(0, SUMMARY) };
}

function summarizeArguments(given: Record<string, unknown>): string {
  const parts = Object.entries(given).map(
    ([name, value]) => `${name}: ${typeof value === "string" ? value : JSON.stringify(value)}`,
  );
  return parts.join(", ").replace(/\s+/g, " ").slice(0, SUMMARY);
}

/** The reply has ended: nothing of it runs any more. */
export function finishReply(message: Message, state: Message["state"], now: number): Message {
  const pieces = message.pieces.map((piece) =>
    piece.kind === "call" && piece.ended === null
      ? { ...piece, state: "cancelled" as const, ended: now / 1000 }
      : piece,
  );
  return { ...message, state: message.state === "running" ? state : message.state, wait: null, pieces };
}
