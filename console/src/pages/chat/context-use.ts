/** The use of a model's context: the tokens of the last request, the share of the tools, and when to warn. */
import type { ChatUsage } from "toolyard-client";
import type { Message } from "./model";

/** The tokens of one request and its reply; null: the provider did not count. */
export interface TokenUse {
  prompt: number | null;
  completion: number | null;
  /** An upper estimate of the offered tools, and their number. */
  toolTokens: number;
  tools: number;
}

export interface ContextUse extends TokenUse {
  /** Tokens of all replies, in all their rounds. */
  total: number;
  /** The share of the window that the next request needs at least; null if either is unknown. */
  filled: number | null;
  /** The share of tools in the prompt, or in the window if that is known. */
  toolShare: number | null;
}

const MUCH = 8000; // tokens of tools that are worth a word where the window is unknown
const PROMPT_SHARE = 0.5;
const WINDOW_SHARE = 0.2;
export const NEARLY_FULL = 0.8;

export function toTokenUse(
  usage: ChatUsage | undefined,
  offer: { tools: number; tokens: number } | undefined,
): TokenUse {
  return {
    prompt: usage?.prompt_tokens ?? null,
    completion: usage?.completion_tokens ?? null,
    toolTokens: offer?.tokens ?? 0,
    tools: offer?.tools ?? 0,
  };
}

export function contextUse(messages: readonly Message[], window: number | null): ContextUse | null {
  const last = messages.findLast((message) => message.use !== null)?.use;
  const total = messages.reduce((sum, message) => sum + (message.usage?.total_tokens ?? 0), 0);
  if (!last) return null;
  const tools = last.prompt === null ? last.toolTokens : Math.min(last.toolTokens, last.prompt);
  return {
    ...last,
    toolTokens: tools,
    total,
    filled: window && last.prompt !== null ? (last.prompt + (last.completion ?? 0)) / window : null,
    toolShare: window ? tools / window : last.prompt ? tools / last.prompt : null,
  };
}

/** True if tools take so much that choosing fewer of them is worth it. */
export function fillsPrompt({ toolTokens, toolShare }: ContextUse, window: number | null): boolean {
  return toolTokens >= (window ? 0 : MUCH) && toolShare !== null && toolShare >= (window ? WINDOW_SHARE : PROMPT_SHARE);
}

/** A number of tokens in a few characters: 950, 12.4k, 1.2M. */
export function shortCount(tokens: number): string {
  if (tokens < 1000) return String(tokens);
  const [value, sign] = tokens < 999_500 ? [tokens / 1000, "k"] : [tokens / 1_000_000, "M"];
  return `${value < 100 ? Number(value.toFixed(1)) : Math.round(value)}${sign}`;
}

export function percent(share: number): string {
  return `${Math.round(share * 100)}%`;
}
