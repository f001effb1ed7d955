/** The language of the search: `code:NOT_FOUND tool:Read since:2h "some text"`. What has a key is a filter of its own in
 * the address; all other words are looked for in arguments and results. */
import { isErrorCode } from "../../lib/error-codes";

export const KEYS = ["code", "tool", "caller", "state", "since", "before"] as const;
export type Key = (typeof KEYS)[number];
export const STATES = ["running", "success", "partial", "error", "cancelled", "interrupted"] as const;
/** What may be typed besides the keys themselves. */
const ALIASES: Record<string, Key> = {
  error: "code",
  from: "caller",
  by: "caller",
  status: "state",
  after: "since",
  until: "before",
  错误码: "code",
  错误: "code",
  工具: "tool",
  调用者: "caller",
  状态: "state",
  起始: "since",
  开始: "since",
  截止: "before",
};
const UNITS: Record<string, number> = { s: 1, m: 60, min: 60, h: 3600, d: 86400, w: 604800 };
/** The words of older links. */
const SPANS: Record<string, string> = { hour: "1h", day: "1d", week: "1w" };

export type CallQuery = Record<Key | "q", string>;
/** Something that was typed and means nothing: a key, or the value of one. */
export interface Hint {
  key: string;
  value: string;
}
export interface Parsed {
  query: CallQuery;
  hints: Hint[];
}
/** A word of the text, from `start` to `end`; `key` is what stands before its colon. */
export interface Token {
  key: string;
  value: string;
  start: number;
  end: number;
}

const TOKEN = /(?:([\p{L}_]+)[:：])?("[^"]*"?|“[^”]*”?|\S*)/gu;

export function tokensOf(text: string): Token[] {
  const tokens: Token[] = [];
  for (const match of text.matchAll(TOKEN)) {
    if (!match[0]) continue;
    const isAddress = match[2]!.startsWith("//"); // http://… is no key
    tokens.push({
      key: isAddress ? "" : (match[1] ?? ""),
      value: isAddress ? match[0] : unquote(match[2]!),
      start: match.index,
      end: match.index + match[0].length,
    });
  }
  return tokens;
}

export function keyOf(name: string): Key | null {
  const lower = name.toLowerCase();
  return (KEYS as readonly string[]).includes(lower) ? (lower as Key) : (ALIASES[lower] ?? null);
}

export function parseQuery(text: string): Parsed {
  const query: CallQuery = { code: "", tool: "", caller: "", state: "", since: "", before: "", q: "" };
  const hints: Hint[] = [];
  const rest: string[] = [];
  for (const { key: name, value } of tokensOf(text)) {
    const key = keyOf(name);
    if (!key) {
      if (name) hints.push({ key: name, value });
      rest.push(name ? `${name}:${value}` : value);
    } else if (value) {
      const { good, bad } = read(key, value);
      hints.push(...bad.map((one) => ({ key, value: one })));
      if (good) query[key] = key === "code" || key === "state" ? join(query[key], good) : good;
    }
  }
  return { query: { ...query, q: rest.join(" ").trim() }, hints };
}

/** The filters in a text and what remains of it; null if it has none. */
export function filtersIn(text: string): Partial<CallQuery> | null {
  const { query } = parseQuery(text);
  const given = KEYS.filter((key) => query[key]);
  return given.length ? { ...Object.fromEntries(given.map((key) => [key, query[key]])), q: query.q } : null;
}

/** The text that says the same; `parseQuery` understands it. */
export function formatQuery(query: Partial<CallQuery>): string {
  const filters = KEYS.filter((key) => query[key]).map((key) => `${key}:${quote(SPANS[query[key]!] ?? query[key]!)}`);
  return [...filters, ...(query.q ? [query.q] : [])].join(" ");
}

export function sameQuery(a: CallQuery, b: CallQuery): boolean {
  return (Object.keys(a) as (keyof CallQuery)[]).every((key) => a[key] === b[key]);
}

/** A moment as people type it, in seconds since 1970: `2h`, `yesterday`, `14:30`, `2026-11-16`, `2026-11-16T14:30`. */
export function parseMoment(text: string, now: Date): number | null {
  const said = SPANS[text] ?? text.toLowerCase();
  const span = /^(\d{1,6})(min|[smhdw])$/.exec(said);
  if (span) return Math.floor(now.getTime() / 1000) - Number(span[1]) * UNITS[span[2]!]!;
  const today = new Date(now.getFullYear(), now.getMonth(), now.getDate());
  if (said === "now" || said === "现在") return Math.floor(now.getTime() / 1000);
  if (said === "today" || said === "今天") return today.getTime() / 1000;
  if (said === "yesterday" || said === "昨天")
    return new Date(now.getFullYear(), now.getMonth(), now.getDate() - 1).getTime() / 1000;
  const clock = /^(\d{1,2}):(\d{2})$/.exec(said);
  if (clock && Number(clock[1]) < 24 && Number(clock[2]) < 60)
    return today.setHours(Number(clock[1]), Number(clock[2])) / 1000;
  const day = /^(\d{4})-(\d{1,2})-(\d{1,2})(?:[t ](\d{1,2}):(\d{2}))?$/.exec(said);
  if (!day) return null;
  const [year, month, date, hour = 0, minute = 0] = day.slice(1).map((part) => (part ? Number(part) : undefined));
  const at = new Date(year!, month! - 1, date, hour, minute);
  return at.getMonth() === month! - 1 && at.getDate() === date && hour < 24 ? at.getTime() / 1000 : null;
}

function read(key: Key, value: string): { good: string; bad: string[] } {
  if (key === "code" || key === "state") {
    const values = value.split(/[,，]/).filter(Boolean);
    const known = (one: string) =>
      key === "code" ? one.toUpperCase().replaceAll("-", "_") : one.toLowerCase().replace(/^failed$/, "error");
    const isGood = (one: string) =>
      key === "code" ? isErrorCode(known(one)) : (STATES as readonly string[]).includes(known(one));
    return { good: values.filter(isGood).map(known).join(","), bad: values.filter((one) => !isGood(one)) };
  }
  const isGood = key === "since" || key === "before" ? parseMoment(value, new Date()) !== null : true;
  return isGood ? { good: value, bad: [] } : { good: "", bad: [value] };
}

const join = (before: string, more: string) =>
  [...new Set([...before.split(","), ...more.split(",")])].filter(Boolean).join();
const quote = (value: string) => (/\s/.test(value) ? `"${value}"` : value);
const unquote = (value: string) => value.replace(/^["“]/, "").replace(/["”]$/, "");
