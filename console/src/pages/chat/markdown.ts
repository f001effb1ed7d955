/** A message or a conversation as Markdown: the text as it was written, without reasoning, and tool calls and attached
 * files as quotes. */
import { formatBytes } from "../../lib/clock";
import { loadMessages, messageIn, messageText } from "../../lib/messages";
import { textToMarkdown } from "./answer";
import type { Attachment } from "./attachments";
import { withoutThoughts, type Call, type Message, type Piece } from "./model";
import { words } from "./words";
import { threadWords } from "./words-thread";

/** A part of a message as Markdown, with what a reader needs to make it again. */
interface Part {
  kind: "text" | "image" | "file" | "call" | "end";
  markdown: string;
  facts?: object;
}

export async function messageToMarkdown(message: Message): Promise<string> {
  const t = threadWords();
  const parts = await messageToParts(message);
  return parts
    .map(({ kind, markdown }) => (kind === "image" ? `*(${t.image})*` : markdown.trim()))
    .filter(Boolean)
    .join("\n\n");
}

export async function conversationToMarkdown(title: string, messages: readonly Message[]): Promise<string> {
  const texts = await Promise.all(messages.map(messageToMarkdown));
  const parts = messages.map((message, at) => `${messageHeading(message)}\n\n${texts[at]}`);
  return `${[`# ${title || words().untitled}`, ...parts].join("\n\n").trimEnd()}\n`;
}

export function messageHeading({ role, model }: Message): string {
  const t = words();
  return `## ${toLine(role === "user" ? t.you : model ? `${t.assistant} (${model})` : t.assistant)}`;
}

/** The parts that have something to say, in their order. */
export async function messageToParts(message: Message): Promise<Part[]> {
  const t = threadWords();
  if (message.role === "user")
    return [
      ...message.images.map((uri): Part => ({ kind: "image", markdown: `![${t.image}](${uri})` })),
      ...message.attachments.map(fileToPart),
      ...textToPart(message.text),
    ];
  const parts = await Promise.all(message.pieces.map(pieceToParts));
  const end = message.state === "stopped" ? t.stopped : message.state === "failed" ? t.failed : "";
  if (message.fault) await loadMessages();
  const fault = message.fault?.message ? `: ${messageText(messageIn(message.fault, "message"))}` : "";
  return [...parts.flat(), ...(end ? [{ kind: "end" as const, markdown: `*(${end}${fault})*` }] : [])];
}

async function pieceToParts(piece: Piece): Promise<Part[]> {
  if (piece.kind === "call") return [callToPart(piece)];
  return piece.kind === "text" ? textToPart(await textToMarkdown(withoutThoughts(piece.text))) : [];
}

function textToPart(text: string): Part[] {
  return text ? [{ kind: "text", markdown: text }] : [];
}

function fileToPart({ text, ...facts }: Attachment): Part {
  const t = threadWords();
  const head = `**${t.attachedFile(facts.name)}** (${formatBytes(facts.size)})`;
  return { kind: "file", markdown: quote([toLine(head), codeBlock(text)]), facts };
}

function callToPart(call: Call): Part {
  const t = threadWords();
  const { id, tool, command, summary, state, started, ended, answered } = call;
  const seconds = ended !== null && ended > started ? (ended - started).toFixed(1) : "";
  const end = [answered === "denied" ? t.denied : t.callState(state), seconds && `${seconds} s`];
  const head = `**${t.toolCall(tool)}** (${end.filter(Boolean).join(", ")})`;
  const left = call.left + call.media.length;
  return {
    kind: "call",
    markdown: quote([toLine(head), inlineCode(toLine(summary)), codeBlock(withoutBlankEnds(call.text))]),
    facts: { id, tool, command, summary, state, started, ended, answered, left },
  };
}

const FENCE = /^`{3,}$/;

/** The text in the code block of a quoted part: what `quote` and `codeBlock` made of it. */
export function readQuotedCode(lines: readonly string[]): string {
  const plain = lines.map((line) => line.replace(/^> ?/, ""));
  const from = plain.findIndex((line) => FENCE.test(line));
  const to = plain.lastIndexOf(plain[from] ?? "");
  return from < 0 || to === from ? "" : plain.slice(from + 1, to).join("\n");
}

function quote(parts: readonly string[]): string {
  return parts
    .filter(Boolean)
    .join("\n\n")
    .split("\n")
    .map((line) => (line ? `> ${line}` : ">"))
    .join("\n");
}

/** Whatever stands in it, nothing of it ends the code. */
function codeBlock(text: string): string {
  const fence = "`".repeat(Math.max(3, longestTicks(text) + 1));
  return text && `${fence}\n${text}\n${fence}`;
}

function inlineCode(text: string): string {
  const fence = "`".repeat(longestTicks(text) + 1);
  const pad = /^`|`$/.test(text) ? " " : "";
  return text && `${fence}${pad}${text}${pad}${fence}`;
}

function longestTicks(text: string): number {
  return (text.match(/`+/g) ?? []).reduce((most, run) => Math.max(most, run.length), 0);
}

export function toLine(text: string): string {
  return text.replace(/[\r\n]+/g, " ").trim();
}

function withoutBlankEnds(text: string): string {
  return text.replace(/^(?:[^\S\n]*\n)+/, "").trimEnd();
}
