/** Conversations as files: written as JSON with all their branches, and read again; also from a Markdown export and from
 * the messages of OpenAI's chat protocol. What a file says is checked member by member: it may come from anybody. */
import { mimeOf } from "../../lib/media";
import type { Attachment } from "./attachments";
import { linkMessages } from "./branches";
import { FileError } from "./file-error";
import { isMarkdownFile, parseMarkdownFile } from "./markdown-file";
import { finishReply } from "./reply";
import { blankMessage, newId, SETTINGS, settingsOf, type Call, type Message, type Piece, type Settings } from "./model";

const FORMAT = "toolyard-conversation";
const VERSION = 1;
const ID = /^[A-Za-z0-9_-]{1,64}$/;
const TITLE = 200;
const SUMMARY = 240;

export interface ConversationFile {
  title: string;
  model: string;
  settings: Settings;
  leaf: string;
  messages: Message[];
}
type Fields = Record<string, unknown>;

export function writeConversation(conversation: ConversationFile): string {
  return `${JSON.stringify({ format: FORMAT, version: VERSION, ...conversation }, null, 2)}\n`;
}

export function readConversation(text: string): ConversationFile {
  const file = parseFile(text);
  if (file["format"] === FORMAT && Number(file["version"]) > VERSION) throw new FileError("newerFormat");
  const given = file["messages"];
  if (!Array.isArray(given) || !given.length) throw new FileError("noMessages");
  const system = given.filter(isSystem).map((one) => contentText(one["content"]));
  const messages = file["format"] === FORMAT ? withOwnIds(given.map(readMessage)) : readOpenAi(given);
  if (!messages.length) throw new FileError("noMessages");
  const settings = readSettings(isFields(file["settings"]) ? file["settings"] : {});
  return {
    title: textOf(file["title"]).slice(0, TITLE),
    model: textOf(file["model"]).slice(0, TITLE),
    settings: system.length ? { ...settings, instructions: system.join("\n\n") } : settings,
    leaf: textOf(file["leaf"]),
    messages: linkMessages(messages),
  };
}

function parseFile(given: string): Fields {
  const text = given.replace(/^\uFEFF/, "");
  if (isMarkdownFile(text)) return { ...parseMarkdownFile(text), format: FORMAT };
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw new FileError("notConversation");
  }
  if (Array.isArray(value)) return { messages: value };
  if (!isFields(value)) throw new FileError("noMessages");
  return value;
}

/** A file never brings more rights than asking: what runs without approval is this key's own choice. */
function readSettings(given: Fields): Settings {
  const { tools, mode, ...rest } = settingsOf(pick(given, SETTINGS as unknown as Fields));
  const names = given["tools"];
  return {
    ...rest,
    tools: Array.isArray(names)
      ? names.filter((name): name is string => typeof name === "string")
      : tools === "none"
        ? tools
        : "all",
    mode: mode === "read-only" ? mode : "ask",
    reply: rest.reply === "json" ? rest.reply : "text",
  };
}

function withOwnIds(messages: readonly Message[]): Message[] {
  const known = new Set<string>();
  return messages.map((message) => {
    const id = known.has(message.id) ? newId() : message.id;
    known.add(id);
    return { ...message, id };
  });
}

function readMessage(given: unknown, at: number): Message {
  if (!isFields(given) || (given["role"] !== "user" && given["role"] !== "assistant"))
    throw new FileError("badMessage", at + 1);
  const blank = blankMessage(given["role"]);
  const known = { ...blank, ...pick(given, blank as unknown as Fields) };
  const id = textOf(given["id"]);
  const message: Message = {
    ...known,
    id: ID.test(id) ? id : blank.id,
    role: blank.role,
    images: known.images.filter((one) => typeof one === "string" && isImage(one)),
    attachments: listOf(given["attachments"]).flatMap(readAttachment),
    pieces: listOf(given["pieces"]).flatMap(readPiece),
    state: known.state === "failed" || known.state === "stopped" ? known.state : "done",
    fault: isFields(given["fault"]) ? pickTexts(given["fault"], { code: "", message: "", request: "" }) : null,
    cursor: 0, // the events are those of another chat
    ended: 0,
  };
  if (given["state"] === "running") message.state = "stopped";
  if (given["parent"] === undefined) delete (message as Partial<Message>).parent; // it follows the one before it
  return finishReply(message, message.state, Date.now());
}

function readAttachment(given: unknown): Attachment[] {
  if (!isFields(given) || !textOf(given["name"])) return [];
  const { size, pages } = given;
  return [
    {
      name: textOf(given["name"]),
      kind: given["kind"] === "pdf" ? "pdf" : "text",
      size: isCount(size) ? size : 0,
      text: textOf(given["text"]),
      truncated: given["truncated"] === true,
      pages: isCount(pages) ? pages : null,
    },
  ];
}

const CALL: Call = {
  kind: "call",
  id: "",
  tool: "",
  command: "",
  summary: "",
  state: "success",
  text: "",
  started: 0,
  ended: 0,
  media: [],
  left: 0,
  approval: null,
  answered: "",
};
const STATES: readonly string[] = ["success", "partial", "error", "cancelled", "scheduled", "background"];

function readPiece(given: unknown): Piece[] {
  if (!isFields(given)) return [];
  const text = textOf(given["text"]);
  if (given["kind"] === "text") return [{ kind: "text", text }];
  if (given["kind"] === "thinking") return [{ kind: "thinking", text, started: 0, ms: Number(given["ms"]) || 0 }];
  if (given["kind"] !== "call") return [];
  const call = { ...CALL, ...pick(given, CALL as unknown as Fields) };
  return [
    {
      ...call,
      kind: "call",
      state: STATES.includes(call.state) ? call.state : "cancelled",
      ended: Number(given["ended"]) || call.started,
      media: call.media.filter((uri) => typeof uri === "string" && mimeOf(uri) !== null),
      approval: null,
    },
  ];
}

/** Messages of OpenAI's chat protocol: replies that follow each other are the rounds of one. */
function readOpenAi(given: readonly unknown[]): Message[] {
  const messages: Message[] = [];
  given.forEach((one, at) => {
    if (isSystem(one)) return;
    if (!isFields(one)) throw new FileError("badMessage", at + 1);
    const { role, content } = one;
    const last = messages[messages.length - 1];
    if (role === "tool" && last?.role === "assistant") {
      const call = last.pieces.find(
        (piece): piece is Call => piece.kind === "call" && piece.id === one["tool_call_id"],
      );
      if (call) call.text = contentText(content);
    } else if (role === "user" && isContent(content)) {
      const images = Array.isArray(content) ? content.flatMap(imageOf) : [];
      messages.push({ ...blankMessage("user"), parent: last?.id ?? "", text: contentText(content), images });
    } else if (role === "assistant" && (isContent(content) || Array.isArray(one["tool_calls"]))) {
      const calls = Array.isArray(one["tool_calls"]) ? one["tool_calls"].flatMap(callOf) : [];
      const text = contentText(content);
      const pieces: Piece[] = [...(text ? [{ kind: "text" as const, text }] : []), ...calls];
      if (last?.role === "assistant") last.pieces.push(...pieces);
      else messages.push({ ...blankMessage("assistant"), parent: last?.id ?? "", pieces });
    } else if (role !== "tool") throw new FileError("badMessage", at + 1);
  });
  return messages;
}

function isImage(uri: string): boolean {
  return !!mimeOf(uri)?.startsWith("image/");
}

function isSystem(value: unknown): value is Fields {
  return isFields(value) && (value["role"] === "system" || value["role"] === "developer");
}

function isContent(content: unknown): boolean {
  return typeof content === "string" || Array.isArray(content);
}

function contentText(content: unknown): string {
  if (!Array.isArray(content)) return textOf(content);
  return content
    .map((part) => (isFields(part) ? textOf(part["text"]) : ""))
    .filter(Boolean)
    .join("\n\n");
}

function imageOf(part: unknown): string[] {
  const image = isFields(part) && isFields(part["image_url"]) ? textOf(part["image_url"]["url"]) : "";
  return isImage(image) ? [image] : [];
}

function callOf(given: unknown): Call[] {
  if (!isFields(given) || !isFields(given["function"])) return [];
  const { name, arguments: input } = given["function"];
  return [
    { ...CALL, media: [], id: textOf(given["id"]), tool: textOf(name), summary: textOf(input).slice(0, SUMMARY) },
  ];
}

/** The members that a template has, where they are of the same type. */
function pick<T extends Fields>(given: Fields, template: T): Partial<T> {
  const kept = Object.entries(template).filter(([key, value]) => isLike(given[key], value));
  return Object.fromEntries(kept.map(([key]) => [key, given[key]])) as Partial<T>;
}

function pickTexts<T extends Record<string, string>>(given: Fields, template: T): T {
  return { ...template, ...pick(given, template) };
}

function isLike(value: unknown, template: unknown): boolean {
  if (template === null) return isPlain(value) || isFlat(value);
  if (Array.isArray(template)) return Array.isArray(value) && value.every((one) => isPlain(one) || isFlat(one));
  return typeof value === typeof template && (typeof value !== "number" || Number.isFinite(value));
}

function isPlain(value: unknown): boolean {
  return value === null || ["string", "number", "boolean"].includes(typeof value);
}

function isFlat(value: unknown): boolean {
  return isFields(value) && Object.values(value).every(isPlain);
}

function isFields(value: unknown): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && Number(value) >= 0;
}

function listOf(value: unknown): unknown[] {
  return Array.isArray(value) ? value : [];
}

function textOf(value: unknown): string {
  return typeof value === "string" ? value : "";
}
