/** Parts of a text, of which some are what was searched for: where words begin as those of the search do. */
export interface TextPart {
  text: string;
  hit: boolean;
}

const UNSPACED = "[\\u2e80-\\u9fff\\uac00-\\ud7af\\uf900-\\ufaff]"; // of languages without spaces
const IS_UNSPACED = new RegExp(`^${UNSPACED}`);
const RUNS = new RegExp(`${UNSPACED}+`, "g");
const BEGINS = `(?:(?<![\\p{L}\\p{N}])|(?<=${UNSPACED}))`;

export function markWords(text: string, search: string): TextPart[] {
  const found =
    search
      .toLowerCase()
      .replace(RUNS, " $& ")
      .match(/[\p{L}\p{N}]+/gu) ?? [];
  const words = [...new Set(found)].sort((a, b) => b.length - a.length);
  if (!words.length) return [{ text, hit: false }];
  const starts = words.map((word) => (IS_UNSPACED.test(word) ? word : `${BEGINS}${word}`));
  return text
    .split(new RegExp(`(${starts.join("|")})`, "giu"))
    .map((part, at) => ({ text: part, hit: at % 2 === 1 }))
    .filter((part) => part.text);
}
