/** The argument that tells one call of a tool from another: its file, its address, what it looks for. */

/** Arguments that say most, in this order; a tool without any of them is told apart by its first text. */
const TELLING = ["path", "file_path", "file", "url", "query", "pattern", "expression", "prompt", "text"];
const MOST = 80;

/** One short line, or an empty text if there is nothing to say. */
export function mainArgument(given: unknown): string {
  if (typeof given !== "object" || given === null) return "";
  const texts = Object.entries(given).flatMap(([name, value]): [string, string][] =>
    typeof value === "string" && value.trim() && !(name === "command" && isCommandName(value)) ? [[name, value]] : [],
  );
  const telling = TELLING.map((name) => texts.find(([one]) => one === name)).find(Boolean) ?? texts[0];
  const line = (telling?.[1] ?? "").trim().replaceAll(/\s+/g, " ");
  return line.length > MOST ? `${line.slice(0, MOST - 1)}…` : line;
}

/** The command of a plugin is part of its name; the command of a shell is what it was about. */
export const isCommandName = (text: string) => /^[\w.-]{1,60}$/.test(text);
