/** What can follow at the caret of the search: the keys, or the values of the key that stands there. */
import { callerName } from "../../lib/caller";
import { ERROR_CODES, errorWords } from "../../lib/error-codes";
import { stateWord } from "../../ui/chip";
import { KEYS, STATES, keyOf, tokensOf, type Key } from "./query";
import { activityWords as words } from "./words";

const MOST = 8;

export interface Values {
  tools: readonly string[];
  callers: readonly string[];
}
/** Text that replaces what stands from `start` to `end`; `ends` if nothing more needs to be typed. */
export interface Suggestion {
  insert: string;
  meaning: string;
  start: number;
  end: number;
  ends: boolean;
}

export function suggest(text: string, caret: number, values: Values): Suggestion[] {
  const token = tokensOf(text).find((one) => one.start <= caret && caret <= one.end);
  const [start, end] = token ? [token.start, token.end] : [caret, caret];
  const key = token && keyOf(token.key);
  if (!key) {
    if (token?.key) return [];
    const begun = token?.value.toLowerCase() ?? "";
    const used = new Set(tokensOf(text).map((one) => keyOf(one.key)));
    const t = words();
    const meanings: Record<Key, string> = {
      code: t.byCode,
      tool: t.byTool,
      caller: t.byCaller,
      state: t.byState,
      since: t.bySince,
      before: t.byBefore,
    };
    return KEYS.filter((one) => one.startsWith(begun) && !used.has(one)).map((one) => ({
      insert: `${one}:`,
      meaning: meanings[one],
      start,
      end,
      ends: false,
    }));
  }
  const typed = token.value.toLowerCase();
  const last = typed.slice(Math.max(typed.lastIndexOf(","), typed.lastIndexOf("，")) + 1);
  const before = token.value.slice(0, token.value.length - last.length);
  return valuesOf(key, values)
    .filter(([value, meaning]) => value.toLowerCase().includes(last) || meaning.toLowerCase().includes(last))
    .filter(([value]) => `${before}${value}` !== token.value)
    .sort(([a], [b]) => Number(b.toLowerCase().startsWith(last)) - Number(a.toLowerCase().startsWith(last)))
    .slice(0, MOST)
    .map(([value, meaning]) => ({
      insert: `${key}:${/\s/.test(value) ? `"${before}${value}"` : before + value} `,
      meaning,
      start,
      end,
      ends: true,
    }));
}

function valuesOf(key: Key, values: Values): (readonly [string, string])[] {
  const t = words();
  switch (key) {
    case "code":
      return ERROR_CODES.map((code) => [code, errorWords()[code]]);
    case "tool":
      return values.tools.map((name) => [name, ""]);
    case "caller":
      return [...new Set(values.callers.map(callerName))].map((name) => [name, ""]);
    case "state":
      return STATES.map((state) => [state, stateWord(state)]);
    case "since":
      return [
        ["1h", t.hour],
        ["24h", t.day],
        ["today", t.today],
        ["yesterday", t.yesterday],
        ["7d", t.week],
      ];
    case "before":
      return [
        ["today", t.today],
        ["1h", t.hourAgo],
        ["24h", t.dayAgo],
      ];
  }
}
