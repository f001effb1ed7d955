/** Short words about what was just done, gone after a few seconds. What went wrong stays until somebody closes it: it may
 * be the only copy. */
import { signal } from "@preact/signals";
import type { ApiError } from "./api";

/** A failure whose message is written for people, in the language of the page. */
export class UserError extends Error {}

export interface Toast {
  id: number;
  text: string;
  tone: "good" | "bad" | "plain";
  /** Shown instead of the text, in the language of the page. */
  error?: ApiError;
}
export const toasts = signal<readonly Toast[]>([]);
let count = 0;

export function showToast(text: string, tone: Toast["tone"] = "good", error?: ApiError): Toast {
  const one: Toast = { id: ++count, text, tone, error };
  // The same fault is not shown twice.
  const others = toasts.value.filter((other) => other.tone !== "bad" || other.text !== text);
  toasts.value = [...others.slice(-3), one];
  if (tone !== "bad") setTimeout(() => closeToast(one), 5000);
  return one;
}

export function closeToast(one: Toast): void {
  toasts.value = toasts.value.filter((other) => other !== one);
}
