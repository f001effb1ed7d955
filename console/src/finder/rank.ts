/** How well a name fits what was typed: the name itself first, then its beginning, the beginnings of its words, a part
 * of it, and last its letters in order. */

export const enum Fit {
  None = 0,
  Letters = 1,
  Part = 2,
  Words = 3,
  Beginning = 4,
  Exact = 5,
}
/** Greater than what names of any sensible length differ by. */
const STEP = 1000;

/** The rank of the best of these names; 0 if none of them fits. */
export function rankOf(names: readonly string[], search: string): number {
  return Math.max(0, ...names.map((name) => rankName(name, search)));
}

export const fitOf = (rank: number): Fit => Math.ceil(rank / STEP);

/** Of names that fit alike the shorter one ranks higher. */
function rankName(name: string, search: string): number {
  const fit = compare(name, search);
  return fit === Fit.None ? 0 : fit * STEP - Math.min(name.length, STEP - 1);
}

function compare(name: string, search: string): Fit {
  const typed = normalize(search);
  const lower = normalize(name);
  if (!typed || !lower) return Fit.None;
  if (lower === typed) return Fit.Exact;
  if (lower.startsWith(typed)) return Fit.Beginning;
  const starts = wordsOf(name);
  const parts = typed.split(" ");
  if (beginWords(starts, parts) || isInitials(starts, typed)) return Fit.Words;
  if (parts.every((part) => lower.includes(part))) return Fit.Part;
  return typed.length > 1 && hasLetters(lower, typed.replaceAll(" ", "")) ? Fit.Letters : Fit.None;
}

const normalize = (text: string) => text.trim().toLowerCase().replace(/\s+/g, " ");

/** The words of a name: `SciCalculator`, `upstream_key` and `new schedule` have two each. */
function wordsOf(name: string): string[] {
  return name
    .replace(/(\p{Ll}|\p{N})(\p{Lu})/gu, "$1 $2")
    .toLowerCase()
    .split(/[^\p{L}\p{N}]+/u)
    .filter(Boolean);
}

/** Each part begins a word, in this order. */
function beginWords(words: readonly string[], parts: readonly string[]): boolean {
  let at = 0;
  return parts.every((part) => {
    const next = words.findIndex((word, n) => n >= at && word.startsWith(part));
    at = next + 1;
    return next >= 0;
  });
}

function isInitials(words: readonly string[], typed: string): boolean {
  return (
    typed.length > 1 &&
    words
      .map((word) => word[0])
      .join("")
      .startsWith(typed)
  );
}

/** The letters in this order; the first of them begins the name. */
function hasLetters(name: string, letters: string): boolean {
  if (name[0] !== letters[0]) return false;
  let from = 0;
  for (const letter of letters) {
    from = name.indexOf(letter, from) + 1;
    if (!from) return false;
  }
  return true;
}
