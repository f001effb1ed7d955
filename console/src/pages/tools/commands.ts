/** The commands of a tool, each with its own form; none if there is nothing to choose. */
import type { ToolRow } from "toolyard-client";
import { splitCommands, type Command } from "../../ui/schema/command";
import { language } from "../../lib/language";

export function commandsOf(tool: Pick<ToolRow, "forms" | "parameters">): Command[] {
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
