/** A message or a conversation as Markdown: the text as it was written, without reasoning, and tool calls as quotes. */
import { loadMessages, messageIn, messageText } from "../../lib/messages";
import { textToMarkdown } from "./answer";
import { withoutThoughts, type Call, type Message } from "./model";
import { words } from "./words";
import { threadWords } from "./words-thread";

export async function messageToMarkdown(message: Message): Promise<string> {
  const t = threadWords();
  if (message.role === "user")
    return [...message.images.map(() => `*(${t.image})*`), message.text.trim()].filter(Boolean).join("\n\n");
  const parts = await Promise.all(
    message.pieces.map(async (piece) => {
      if (piece.kind === "call") return callToMarkdown(piece);
      return piece.kind === "text" ? await textToMarkdown(withoutThoughts(piece.text)) : "";
    }),
  );
  if (message.fault) await loadMessages();
  const end = message.state === "stopped" ? t.stopped : message.state === "failed" ? t.failed : "";
  const fault = message.fault?.message ? `: ${messageText(messageIn(message.fault, "message"))}` : "";
  return [...parts.map((part) => part.trim()), end && `*(${end}${fault})*`].filter(Boolean).join("\n\n");
}

export async function conversationToMarkdown(title: string, messages: readonly Message[]): Promise<string> {
  const t = words();
  const texts = await Promise.all(messages.map(messageToMarkdown));
  const parts = messages.map((message, at) => {
    const who = message.role === "user" ? t.you : message.model ? `${t.assistant} (${message.model})` : t.assistant;
    return `## ${who}\n\n${texts[at]}`;
  });
  return `${[`# ${title || t.untitled}`, ...parts].join("\n\n").trimEnd()}\n`;
}

function callToMarkdown(call: Call): string {
  const t = threadWords();
  const seconds = call.ended !== null && call.ended > call.started ? (call.ended - call.started).toFixed(1) : "";
  const facts = [call.answered === "denied" ? t.denied : t.callState(call.state), seconds && `${seconds} s`];
  const head = `**${t.toolCall(call.tool)}** (${facts.filter(Boolean).join(", ")})`;
  const lines = [head, call.summary && inlineCode(call.summary), call.text.trim() && codeBlock(call.text.trim())];
  return quote(lines.filter(Boolean).join("\n\n"));
}

function quote(text: string): string {
  return text
    .split("\n")
    .map((line) => (line ? `> ${line}` : ">"))
    .join("\n");
}

/** Whatever stands in it, nothing of it ends the code. */
function codeBlock(text: string): string {
  const fence = "`".repeat(Math.max(3, longestTicks(text) + 1));
  return `${fence}\n${text}\n${fence}`;
}

function inlineCode(text: string): string {
  const fence = "`".repeat(longestTicks(text) + 1);
  const pad = /^`|`$/.test(text) ? " " : "";
  return `${fence}${pad}${text}${pad}${fence}`;
}

function longestTicks(text: string): number {
  return Math.max(0, ...(text.match(/`+/g) ?? []).map((run) => run.length));
}
