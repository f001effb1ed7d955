/** Short words about what was just done. They never carry the only copy of an error. */
import { signal } from "@preact/signals";

export interface Toast { id: number; text: string; tone: "good" | "bad" | "plain" }
export const toasts = signal<readonly Toast[]>([]);
let count = 0;

export function toast(text: string, tone: Toast["tone"] = "good"): void {
  const one = { id: ++count, text, tone };
  toasts.value = [...toasts.value.slice(-3), one];
  setTimeout(() => (toasts.value = toasts.value.filter((other) => other !== one)), 5000);
}
