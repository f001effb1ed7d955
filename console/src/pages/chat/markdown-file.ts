/** A branch of a conversation as a Markdown file that can be read again. Comments, which no reader of Markdown shows,
 * mark where each message and each of its parts begins; a line of a text that looks like one is written with one more
 * colon, so whatever a text says, it is read as that text. */
import { FileError } from "./file-error";
import { messageHeading, messageToParts, readQuotedCode, toLine } from "./markdown";
import type { Message } from "./model";

const VERSION = 1;
const MARKER_START = "<!-- toolyard:";
const BEGIN = /(?:^|\n)<!-- toolyard:conversation\b/;
const CHANGED_ENDS = /(?:^|\n)<!-- toolyard:conversation\b[^\n]*\r\n/; // a system may write every line with CR LF
const MARKER_LIKE = /(?:^|\n)<!-- toolyard:/g;
const MARKER = /^<!-- toolyard:([a-z]+)(?: (\{[^\n]*\}))? -->\s*$/;
const ROLES = ["user", "assistant"];
const PARTS = ["text", "image", "file", "call", "end"];

type Fields = Record<string, unknown>;
interface Section {
  kind: string;
  facts: Fields;
  lines: string[];
}

export async function writeMarkdownFile(title: string, model: string, messages: readonly Message[]): Promise<string> {
  const heading = toLine(title) && `# ${toLine(title)}`;
  const sections = await Promise.all(messages.map(writeMessage));
  return `${[writeSection("conversation", heading, { version: VERSION, model }), ...sections.flat()].join("\n\n")}\n`;
}

async function writeMessage(message: Message): Promise<string[]> {
  const { role, at, model, state, fault } = message;
  const facts = { at, ...(model && { model }), ...(state !== "done" && { state }), ...(fault && { fault }) };
  const parts = await messageToParts(message);
  const first = parts[0]?.kind === "text" ? parts.shift() : undefined;
  const body = [messageHeading(message), ...(first ? [first.markdown] : [])].join("\n\n");
  return [
    writeSection(role, body, facts),
    ...parts.map(({ kind, markdown, facts }) => writeSection(kind, markdown, facts)),
  ];
}

function writeSection(kind: string, body: string, facts?: object): string {
  const json = facts ? ` ${JSON.stringify(facts).replaceAll(">", "\\u003e")}` : ""; // nothing in it ends the comment
  return `<!-- toolyard:${kind}${json} -->\n${body.replace(MARKER_LIKE, "$&:")}`;
}

export function isMarkdownFile(text: string): boolean {
  return BEGIN.test(text);
}

/** Reads the members of a conversation, as the JSON form has them; nothing of what they say is checked here. */
export function parseMarkdownFile(text: string): Fields {
  const [{ facts, lines }, ...sections] = readSections(text);
  const messages: Fields[] = [];
  for (const section of sections) {
    if (ROLES.includes(section.kind))
      messages.push({ ...section.facts, role: section.kind, text: "", images: [], attachments: [], pieces: [] });
    addPart(messages[messages.length - 1]!, section);
  }
  const title = lines.find((line) => line.startsWith("# "))?.slice(2) ?? "";
  return { ...facts, title: title.trim(), messages };
}

function addPart(message: Fields, { kind, facts, lines }: Section): void {
  const list = (name: string) => message[name] as unknown[];
  if (kind === "image") list("images").push(/\((data:[^)]*)\)/.exec(lines.join("\n"))?.[1] ?? "");
  else if (kind === "file") list("attachments").push({ ...facts, text: readQuotedCode(lines) });
  else if (kind === "call") list("pieces").push({ ...facts, kind, text: readQuotedCode(lines) });
  else if (kind !== "end") {
    const text = withoutHeading(kind, lines).join("\n");
    if (message["role"] === "user") message["text"] = [message["text"], text].filter(Boolean).join("\n\n");
    else if (text) list("pieces").push({ kind: "text", text });
  }
}

function withoutHeading(kind: string, lines: readonly string[]): readonly string[] {
  if (kind === "text" || !lines[0]?.startsWith("## ")) return lines;
  return lines.slice(lines[1] === "" ? 2 : 1);
}

/** The first one is that of the conversation, then come those of messages, each with its parts. */
function readSections(text: string): [Section, ...Section[]] {
  const lines = (CHANGED_ENDS.test(text) ? text.replaceAll("\r\n", "\n") : text).replace(/\n$/, "").split("\n");
  const from = lines.findIndex((line) => BEGIN.test(line));
  const sections: Section[] = [];
  lines.slice(from).forEach((line, at) => {
    const last = sections[sections.length - 1];
    if (last && !line.startsWith(MARKER_START)) return void last.lines.push(line);
    if (last && line.startsWith(`${MARKER_START}:`))
      return void last.lines.push(line.replace(`${MARKER_START}:`, MARKER_START));
    const section = readMarker(line);
    const kinds = !last ? ["conversation"] : sections.length === 1 ? ROLES : [...ROLES, ...PARTS];
    if (!section || !kinds.includes(section.kind)) throw new FileError("badMarker", from + at + 1);
    if (last?.lines[last.lines.length - 1] === "") last.lines.pop();
    sections.push(section);
  });
  return sections as [Section, ...Section[]];
}

function readMarker(line: string): Section | null {
  const [, kind = "", json = "{}"] = MARKER.exec(line) ?? [];
  try {
    return { kind, facts: JSON.parse(json) as Fields, lines: [] };
  } catch {
    return null;
  }
}
