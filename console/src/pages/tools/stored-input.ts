/** The input typed for each tool, stored for as long as the window is open. Secrets are not. */
import type { ToolRow } from "toolyard-client";
import type { Values } from "../../ui/schema-form";
import { secretNames, withoutSecrets } from "../../ui/schema/shape";

const key = (tool: string) => `toolyard.input.${tool}`;

export function loadInput(tool: string): Values {
  try {
    const parsed: unknown = JSON.parse(sessionStorage.getItem(key(tool)) ?? "{}");
    return typeof parsed === "object" && parsed !== null && !Array.isArray(parsed) ? (parsed as Values) : {};
  } catch {
    return {};
  }
}

export function saveInput(tool: ToolRow, input: Values): void {
  const secrets = new Set([tool, ...tool.forms].flatMap((one) => [...secretNames(one.parameters)]));
  try {
    sessionStorage.setItem(key(tool.name), JSON.stringify(withoutSecrets(input, secrets)));
  } catch {
    // The store is full: what was typed stays in the form, only not over a reload.
  }
}
