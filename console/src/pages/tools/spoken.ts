/** What a tool is called, what it does and what its parameters mean, in the language of the reader where that is known. */
import { language } from "../../lib/language";
import type { Help } from "../../ui/schema-form";
import chinese from "./built-in.zh.json";

/** The built-in tools in Chinese; their own texts are in English, because models read them. */
const CHINESE: Readonly<Record<string, { description: string; parameters: Help }>> = chinese;

export interface Named { name: string; display_name: string; translations: Readonly<Record<string, { display_name: string; description: string; parameters: Help }>> }

/** Its display name in the language of the reader; in English the name that models use, when all else is Chinese. */
export function titleOf(one: Named): string {
  const own = one.translations[language.value]?.display_name || one.display_name;
  return !own || (language.value !== "zh" && /\p{Script=Han}/u.test(own)) ? one.name : own;
}

export function aboutOf(one: Named & { kind: string; description: string }): string {
  return one.translations[language.value]?.description || builtIn(one)?.description || one.description;
}

/** The help of its parameters; one that is not here is told by the schema. */
export function helpOf(one: Named & { kind: string }): Help {
  return one.translations[language.value === "zh" ? "zh" : "en"]?.parameters ?? builtIn(one)?.parameters ?? {};
}

function builtIn(one: { name: string; kind: string }) {
  return language.value === "zh" && one.kind === "built-in" ? CHINESE[one.name] : undefined;
}
