/** A result as the draft of a chat. Nothing is sent: a person reads it, adds a question, and sends it. */
import { withQuery } from "../../lib/api";
import { summarizeInput } from "./input-summary";
import { mainText } from "../../ui/outcome/parts";
import type { Envelope } from "toolyard-client";
import type { Values } from "../../ui/schema-form";

const MOST_CHARACTERS = 12_000;

export function draftChat(intro: string, envelope: Envelope): string {
  const text = mainText(envelope);
  const cut = text.length > MOST_CHARACTERS ? `${text.slice(0, MOST_CHARACTERS)}\n…` : text;
  const fence = "`".repeat(Math.max(3, ...[...cut.matchAll(/`+/g)].map((one) => one[0].length + 1)));
  return `${intro}\n\n${fence}\n${cut.trimEnd()}\n${fence}\n\n`;
}

export function chatPath(draft: string): string {
  return withQuery("/chat", { prompt: draft });
}

export function describeCall(tool: string, input: Values): string {
  const what = summarizeInput(input);
  return what ? `${tool} (${what})` : tool;
}
