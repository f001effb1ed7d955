/** The commands of a tool, each with its own form; none if there is nothing to choose. */
import { splitCommands, type Command } from "../../ui/schema/command";
import { language } from "../../lib/language";
import type { Schema } from "../../ui/schema-form";
import type { Tool } from "./types";

export interface CommandForm {
  name: string;
  display_name: string;
  description: string;
  translations: Tool["translations"];
  parameters: Schema;
}

export function commandsOf(tool: Pick<Tool, "forms" | "parameters">): Command[] {
  if (!tool.forms?.length) return splitCommands(tool.parameters);
  return tool.forms.map((form) => {
    const own = form.translations[language.value === "zh" ? "zh" : "en"];
    return {
      name: form.name,
      selector: "command",
      title: own?.display_name || form.display_name,
      description: own?.description || form.description,
      schema: form.parameters,
      help: own?.parameters ?? {},
    };
  });
}
