/** An input in one line. The command, which says most, stands first and without its name. */
import { revealHidden } from "../../lib/hidden-characters";
import type { Json, Values } from "../../ui/schema-form";

const MOST_VALUE = 80;
const MOST = 240;

export function summarizeInput(input: Values): string {
  const { command, ...others } = input;
  const fields = Object.entries(others).map(([name, value]) => `${name}=${formatValue(value)}`);
  if (command !== undefined) fields.unshift(formatValue(command));
  return revealHidden(fields.join("  ").replaceAll("\n", "⏎")).slice(0, MOST);
}

function formatValue(value: Json): string {
  return (typeof value === "string" ? value : JSON.stringify(value)).slice(0, MOST_VALUE);
}
