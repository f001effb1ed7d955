/** An answer as one passes it on: Markdown without thinking, also when the model wrote a structured reply. */
import { api } from "../../lib/api";
import { answerOf, type Message } from "./model";

const STRUCTURED = /^(?:```(?:json)?\s*)?\{(?!\{)/i;

export async function answerToCopy(message: Message): Promise<string> {
  return textToMarkdown(answerOf(message));
}

/** Markdown of a text as a model wrote it. */
export async function textToMarkdown(text: string): Promise<string> {
  if (!STRUCTURED.test(text)) return text;
  try {
    const reply = JSON.parse(await renderAs(text, "json")) as Record<string, unknown>;
    delete reply["think"];
    return typeof reply["content"] === "string" ? await renderAs(JSON.stringify(reply), "markdown") : text;
  } catch {
    return text; // what cannot be read is passed on as it was written
  }
}

async function renderAs(text: string, to: "json" | "markdown"): Promise<string> {
  return (await api<{ rendered: string }>("/v1/reply/render", { body: { text, to } })).rendered;
}
