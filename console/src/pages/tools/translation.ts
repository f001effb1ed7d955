/** The name, description and parameter help of a tool, in the language of the reader if there is a translation. */
import { language } from "../../lib/language";
import type { Help } from "../../ui/schema-form";

export interface Translated {
  name: string;
  display_name: string;
  translations: Readonly<Record<string, { display_name: string; description: string; parameters: Help }>>;
}

/** Its display name in the language of the reader; in English the name that models use, when all else is Chinese. */
export function titleOf(one: Translated): string {
  const own = one.translations[language.value]?.display_name || one.display_name;
  return !own || (language.value !== "zh" && /\p{Script=Han}/u.test(own)) ? one.name : own;
}

export function aboutOf(one: Translated & { kind: string; description: string }): string {
  return one.translations[language.value]?.description || one.description;
}

/** The help of its parameters; one that is not here is told by the schema. */
export function helpOf(one: Translated & { kind: string }): Help {
  return one.translations[language.value === "zh" ? "zh" : "en"]?.parameters ?? {};
}
