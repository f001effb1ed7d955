/** Words in English and Chinese. A page writes `const words = dictionary({...}, {...})` and asks `words().title`;
 * both languages have the same keys by type, so that no key can show raw. `pseudo` stretches English by two fifths:
 * a layout that bears it bears any language. */
import { signal } from "@preact/signals";

export type Language = "en" | "zh" | "pseudo";
const STORED = "toolyard.lang";

function initialLanguage(): Language {
  const preferred = new URLSearchParams(location.search).get("lang") ?? localStorage.getItem(STORED);
  if (preferred === "en" || preferred === "zh" || preferred === "pseudo") return preferred;
  return /^zh/i.test(navigator.language) ? "zh" : "en";
}

export const language = signal<Language>(initialLanguage());

export function setLanguage(chosen: Language): void {
  language.value = chosen;
  localStorage.setItem(STORED, chosen);
  document.documentElement.lang = locale();
}

export function locale(): string {
  return language.value === "zh" ? "zh-CN" : "en";
}

const formats = new Map<string, Intl.NumberFormat>();
const dateFormats = new Map<string, Intl.DateTimeFormat>();
const pluralRules = new Map<string, Intl.PluralRules>();

export function formatNumber(n: number, digits = 0): string {
  if (digits === 0 && Number.isInteger(n) && Math.abs(n) < 1000) return String(n); // the same in every language here
  const key = `${locale()} ${digits}`;
  const shape = { minimumFractionDigits: digits, maximumFractionDigits: digits };
  const format = formats.get(key) ?? new Intl.NumberFormat(locale(), shape);
  formats.set(key, format); // to make one is slow
  return format.format(n);
}

/** A share of 0..1 as people read it: `42%`, and `<1%` rather than nothing. */
export function formatPercent(share: number): string {
  return share > 0 && share < 0.01 ? "<1%" : `${Math.round(share * 100)}%`;
}

/** The format for dates and times of a shape: made once, because to make one is slow. */
export function dateFormat(shape: Intl.DateTimeFormatOptions, forLocale = locale()): Intl.DateTimeFormat {
  const key = forLocale + JSON.stringify(shape);
  const format = dateFormats.get(key) ?? new Intl.DateTimeFormat(forLocale, shape);
  dateFormats.set(key, format);
  return format;
}

/** A count with the form that it needs, where # stands for the number: `plural(n, { one: "# file", other: "# files" })`.
 * Chinese has one form. */
export function plural(n: number, forms: { one?: string; other: string }): string {
  const rules = pluralRules.get(locale()) ?? new Intl.PluralRules(locale());
  pluralRules.set(locale(), rules);
  const form = rules.select(n) === "one" ? forms.one : undefined;
  return (form ?? forms.other).replaceAll("#", formatNumber(n));
}

/** Words one after the other, as the language separates them. */
export function joinWords(words: readonly string[]): string {
  return words.join(language.value === "zh" ? "、" : ", ");
}

type Words = { [key: string]: string | ((...given: never[]) => string) };
/** The same keys with text of any wording. */
type Like<T extends Words> = { [K in keyof T]: T[K] extends string ? string : T[K] };

/** The words in the language of the reader; `both` has them in English and in Chinese, for who searches in either. */
interface Dictionary<T extends Words> {
  (): Like<T>;
  readonly both: readonly [Like<T>, Like<T>];
}

export function dictionary<T extends Words>(en: T, zh: Like<T>): Dictionary<T> {
  let stretched: Like<T> | undefined;
  const read = () => {
    if (language.value === "zh") return zh;
    if (language.value === "pseudo") return (stretched ??= stretch(en) as Like<T>);
    return en as Like<T>;
  };
  return Object.assign(read, { both: [en as Like<T>, zh] as const });
}

/** A text that comes in both languages, in that of the reader. */
export function pickText(en: string, zh: string): string {
  return language.value === "zh" ? zh : language.value === "pseudo" ? longer(en) : en;
}

const longer = (text: string) => `${text} ${"x".repeat(Math.ceil(text.length * 0.4))}`;

function stretch<T extends Words>(words: T): Words {
  return Object.fromEntries(
    Object.entries(words).map(([key, word]) => [
      key,
      typeof word === "string" ? longer(word) : (...given: never[]) => longer(word(...given)),
    ]),
  );
}
