/** What a tool asks the client to do beside its result: `_specialAction` and `payload`. The console knows one action,
 * `create_canvas`: it opens the file that the tool wrote. Others are left to the clients that know them. */
import { signal } from "@preact/signals";
import type { SpecialAction } from "toolyard-client";
import { hasScope } from "./api";

/** The file that is open, or empty. */
export const openedCanvas = signal("");

/** The file that an action asks to open; empty if it asks for anything else, or if this key cannot read files. */
export function canvasIn(action: SpecialAction | null | undefined): string {
  if (action?._specialAction !== "create_canvas" || !hasScope("tools")) return "";
  const path = (action.payload as { filePath?: unknown } | null | undefined)?.filePath;
  return typeof path === "string" ? path : "";
}

export function canvasName(path: string): string {
  return path.split("/").pop() ?? path;
}

/** Do what a tool asks for that has just run here. What is open already stays open: nobody is interrupted twice. */
export function perform(action: SpecialAction | null | undefined): void {
  openedCanvas.value ||= canvasIn(action);
}
