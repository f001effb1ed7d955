/** The text of an envelope in the language of the page. Its code and parameters are in its context; of a failure the
 * message is in its error, and what to do next is the hint of its context. */
import type { Failure } from "./api";
import { messageIn, messageText, type ServerMessage } from "./messages";

interface Envelope {
  text: string;
  error?: Failure | null;
  context?: object;
}

/** The text of a result that is no failure. */
export function resultText({ text, context }: Envelope): ServerMessage {
  return messageIn({ ...context, text }, "text");
}

/** What the text of a failure says beside its message: more about it, as the tool said it, and what to do next. */
export function failureAdvice({ text, error, context }: Envelope): { more: string; hint: ServerMessage } {
  const hint = messageIn(context ?? {}, "hint");
  const said = hint.text && text.endsWith(hint.text) ? text.slice(0, -hint.text.length) : text;
  const message = error?.message ?? "";
  const isSaid = message !== "" && said.startsWith(message);
  return { more: (isSaid ? said.slice(message.length).replace(/^\.(?=\s|$)/, "") : said).trim(), hint };
}

/** All of the text, as one. */
export function readableText(envelope: Envelope): string {
  if (!envelope.error) return messageText(resultText(envelope));
  const { more, hint } = failureAdvice(envelope);
  return [messageText(messageIn(envelope.error, "message")), more, messageText(hint)].filter(Boolean).join("\n");
}
