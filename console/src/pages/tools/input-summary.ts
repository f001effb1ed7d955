/** An input in one line. The command, which says most, stands first and without its name. */
import { revealHidden } from "../../lib/hidden-characters";
import type { Json, Values } from "../../ui/schema-form";

const MOST_VALUE = 80;
const MOST = 240;

/** `shared` are fields that say nothing here, because others beside it have the same: they stand last. */
export function summarizeInput(input: Values, shared: ReadonlySet<string> = new Set()): string {
  const { command, ...others } = input;
  const entries = Object.entries(others);
  const ordered = [...entries.filter(([name]) => !shared.has(name)), ...entries.filter(([name]) => shared.has(name))];
  const fields = ordered.map(([name, value]) => `${name}=${formatValue(value)}`);
  if (command !== undefined) fields.unshift(formatValue(command));
  return revealHidden(fields.join("  ").replaceAll("\n", "⏎")).slice(0, MOST);
}

/** The fields that have the same value in each of several inputs. */
export function sharedFields(inputs: readonly Values[]): ReadonlySet<string> {
  const [first, ...rest] = inputs;
  if (!first || !rest.length) return new Set();
  const isShared = (name: string) => rest.every((one) => JSON.stringify(one[name]) === JSON.stringify(first[name]));
  return new Set(Object.keys(first).filter(isShared));
}

function formatValue(value: Json): string {
  return (typeof value === "string" ? value : JSON.stringify(value)).slice(0, MOST_VALUE);
}
