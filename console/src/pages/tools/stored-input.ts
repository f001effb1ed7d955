/** The input typed for each tool, stored for as long as the window is open. */
import type { Values } from "../../ui/schema-form";

const key = (tool: string) => `toolyard.input.${tool}`;

export function loadInput(tool: string): Values {
  try {
    const parsed: unknown = JSON.parse(sessionStorage.getItem(key(tool)) ?? "{}");
    return typeof parsed === "object" && parsed !== null && !Array.isArray(parsed) ? (parsed as Values) : {};
  } catch {
    return {};
  }
}

export function saveInput(tool: string, input: Values): void {
  try {
    sessionStorage.setItem(key(tool), JSON.stringify(input));
  } catch {
    // The store is full: what was typed stays in the form, only not over a reload.
  }
}
