/** The text of an envelope in the language of the page. The codes and parameters of its sentences are in its context; of
 * a failure the message is in its error, and what to do next is the hint of its context. */
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

/** The error of an envelope with the code and the parameters of its message. */
export function failureIn({ code, message }: Failure, context: object = {}): Failure {
  const { message_code, message_params } = context as Partial<Failure>;
  return { code, message, ...(message_code ? { message_code, message_params } : {}) };
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
  return [messageText(messageIn(failureIn(envelope.error, envelope.context), "message")), more, messageText(hint)]
    .filter(Boolean)
    .join("\n");
}
