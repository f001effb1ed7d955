/** A call as the block that a model writes: `<<<[TOOL_REQUEST]>>>`. Any value can stand in it. */
const NAME = /^[\w.-]+$/u;
const MARKED = /[「{][始末]|TOOL_REQUEST/;
const ESCAPED = /(<<<\[(?:END_)?TOOL_REQUEST)((?:_ESCAPE)+)(\]>>>)|(「[始末])((?:ESCAPE)+)(」)/g;

export function blockOf(tool: string, given: Record<string, unknown>): string {
  const fields = [["tool_name", tool], ...Object.entries(given).filter(([name]) => NAME.test(name)).map(([name, value]) => [name, typeof value === "string" ? value : JSON.stringify(value)])];
  return `<<<[TOOL_REQUEST]>>>\n${fields.map(([name, value]) => `${name}:${written(value!)}`).join(",\n")}\n<<<[END_TOOL_REQUEST]>>>`;
}

function written(text: string): string {
  if (text === text.trim() && !MARKED.test(text)) return `「始」${text}「末」`;
  const inner = text.replace(ESCAPED, (_, start?: string, word?: string, end?: string, open?: string, escape?: string, close?: string) => (start ? `${start}${word}_ESCAPE${end}` : `${open}${escape}ESCAPE${close}`));
  return `「始ESCAPE」\n${inner}${text.endsWith("\r") ? "" : "\n"}「末ESCAPE」`;
}
