/** What the server says about plugins, settings and this machine, in the language of the page. The server speaks
 * English; each of its sentences is known here by its shape, with `{}` where something is put in, and a test holds this
 * list against the server's source. A sentence of a newer server, or one that comes from elsewhere, stays as it is. */
import { language } from "./language";
import chinese from "./told.zh.json";

/** `given` is what was put in: a name, a path, a word of somebody else. */
export interface Piece {
  text: string;
  given: boolean;
}
interface Shape {
  parts: readonly string[];
  zh: string;
}

/** No sentence of the server is longer; looking for one in a long text would take long. */
const LONGEST = 2000;
let shapes: readonly Shape[] | undefined;

/** The shape with the most words of its own comes first: others may fit by chance. */
function all(): readonly Shape[] {
  return (shapes ??= Object.entries(chinese as Record<string, string>)
    .map(([en, zh]) => ({ parts: en.split("{}"), zh }))
    .sort((one, other) => other.parts.join("").length - one.parts.join("").length));
}

/** What stands between the parts, each as short as can be; null when the text is not of this shape. In linear time. */
function between(parts: readonly string[], text: string): string[] | null {
  const first = parts[0]!,
    last = parts.at(-1)!;
  if (parts.length === 1) return text === first ? [] : null;
  if (!text.startsWith(first) || !text.endsWith(last)) return null;
  const found: string[] = [];
  let at = first.length;
  for (const part of parts.slice(1, -1)) {
    const next = text.indexOf(part, at);
    if (next < 0) return null;
    found.push(text.slice(at, next));
    at = next + part.length;
  }
  return text.length - last.length < at ? null : [...found, text.slice(at, text.length - last.length)];
}

/** The text in pieces; null when the page does not know the sentence. */
export function told(text: string): Piece[] | null {
  const asked = text.trim();
  if (asked.length > LONGEST) return null;
  for (const shape of all()) {
    const found = between(shape.parts, asked);
    if (!found) continue;
    const values = found.map((value) => told(value) ?? [{ text: value, given: true }]);
    if (language.value === "zh")
      return shape.zh
        .split(/(\{\d\})/)
        .flatMap((part) => values[Number(/^\{(\d)\}$/.exec(part)?.[1] ?? -1)] ?? own(part));
    const english = shape.parts.flatMap((part, at) => [...own(part), ...(values[at] ?? [])]);
    return language.value === "pseudo"
      ? english.map((one) => (one.given ? one : { ...one, text: `${one.text} xx ` }))
      : english;
  }
  const bare = /[^.]\.$/.test(asked) ? told(asked.slice(0, -1)) : null;
  return bare && [...bare, ...own(language.value === "zh" ? "。" : ".")];
}

function own(text: string): Piece[] {
  return text ? [{ text, given: false }] : [];
}
