/** The options of replies: fields of OpenAI's chat protocol, sent only when they are set, and the form of replies. */
import type { ReasoningEffort, ReplyForm } from "toolyard-client";
import type { Settings } from "./model";

export const EFFORTS = ["none", "minimal", "low", "medium", "high", "xhigh"] as const;

export interface ReplyOptions {
  /** null: the provider's default, here and below. */
  temperature: number | null;
  maxTokens: number | null;
  effort: ReasoningEffort | null;
  /** json: structured replies, which the server asks the model for. */
  reply: ReplyForm;
}

export const REPLY_OPTIONS: ReplyOptions = { temperature: null, maxTokens: null, effort: null, reply: "text" };

export function toReplyFields({ temperature, maxTokens, effort }: Settings): object {
  return {
    ...(temperature === null ? {} : { temperature }),
    ...(maxTokens === null ? {} : { max_tokens: maxTokens }),
    ...(effort === null ? {} : { reasoning_effort: effort }),
  };
}

/** The number that a person wrote, null for none; undefined if it is no such number. */
export function parseTemperature(text: string): number | null | undefined {
  return parseNumber(text, (value) => value >= 0 && value <= 2);
}

export function parseMaxTokens(text: string): number | null | undefined {
  return parseNumber(text, (value) => Number.isInteger(value) && value >= 1 && value <= 10_000_000);
}

function parseNumber(text: string, fits: (value: number) => boolean): number | null | undefined {
  if (!text.trim()) return null;
  const value = Number(text.trim().replace(",", "."));
  return Number.isFinite(value) && fits(value) ? value : undefined;
}
