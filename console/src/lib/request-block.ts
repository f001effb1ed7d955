/** A call written as a request block (docs/requests.md): the same text as `format_request` of the server writes. */
import { dictionary } from "./language";
import { UserError } from "./toast";

export type Argument = unknown;

const words = dictionary(
  {
    noTool: "a request needs the name of a tool",
    badName: (name: string) =>
      `'${name}' is not a name that a request can carry: use letters, digits, '_', '-' and '.'`,
    special: (name: string) => `'${name}' means something else in a request`,
  },
  {
    noTool: "缺少工具名称",
    badName: (name: string) => `参数名“${name}”不可用，只能包含字母、数字、“_”、“-”和“.”`,
    special: (name: string) => `参数名“${name}”在请求块中另有含义`,
  },
);

const NAME = /^[\p{L}\p{N}_.-]+$/u;
/** Names that mean something else in a block and never reach the tool. */
const SPECIAL = new Set(["tool_name", "archery", "ink", "river", "timely_contact", "tool_password"]);
const NOT_PLAIN = /[「{][始末]|TOOL_REQUEST/;
const ESCAPED = /(<<<\[(?:END_)?TOOL_REQUEST)((?:_ESCAPE)+)(\]>>>)|(「[始末])((?:ESCAPE)+)(」)/g;
// What the server's `strip` takes away, which is not quite what `trim` does.
const BLANK_END =
  // eslint-disable-next-line no-control-regex -- it takes these controls away as well
  /^[\t-\r\x1c-\x20\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]|[\t-\r\x1c-\x20\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]$/;

/** The block that calls `tool`; throws when a name cannot stand in one. Every value can: what is no text is written as JSON. */
export function formatRequest(tool: string, args: Readonly<Record<string, Argument>>): string {
  if (!tool.trim()) throw new UserError(words().noTool);
  const fields: [string, string][] = [["tool_name", tool]];
  for (const [name, value] of Object.entries(args)) {
    if (!NAME.test(name)) throw new UserError(words().badName(name));
    if (SPECIAL.has(name) || name.startsWith("__")) throw new UserError(words().special(name));
    fields.push([name, typeof value === "string" ? value : (JSON.stringify(value) ?? "")]);
  }
  const lines = fields.map(([name, text]) => `${name}:${formatValue(text)}`).join(",\n");
  return `<<<[TOOL_REQUEST]>>>\n${lines}\n<<<[END_TOOL_REQUEST]>>>`;
}

function formatValue(text: string): string {
  if (!BLANK_END.test(text) && !NOT_PLAIN.test(text)) return `「始」${text}「末」`;
  // A newline after "\r" would be one line end with it, and taken away with it.
  return `「始ESCAPE」\n${escapeMarkers(text)}${text.endsWith("\r") ? "" : "\n"}「末ESCAPE」`;
}

/** Marks with an ESCAPE get one more, so that none of them ends the value; plain ones stay. */
function escapeMarkers(text: string): string {
  return text.replace(
    ESCAPED,
    (_, open?: string, words?: string, close?: string, mark?: string, escapes?: string, end?: string) =>
      open ? `${open}${words}_ESCAPE${close}` : `${mark}${escapes}ESCAPE${end}`,
  );
}
