/** True while the page is printed, and before that while it prepares: what is out of view is drawn as well. */
import { signal } from "@preact/signals";

const PATIENCE_MS = 15_000;
const LOOK_MS = 50;

export const isPrinting = signal(false);
addEventListener("beforeprint", () => (isPrinting.value = true));
addEventListener("afterprint", () => (isPrinting.value = false));

/** Prints once everything is drawn, or as far as it is when that takes too long. */
export async function printWhen(isDrawn: () => boolean): Promise<void> {
  if (isPrinting.peek()) return;
  isPrinting.value = true;
  const until = Date.now() + PATIENCE_MS;
  do await new Promise((wake) => setTimeout(wake, LOOK_MS));
  while (!isDrawn() && Date.now() < until);
  try {
    window.print();
  } finally {
    isPrinting.value = false;
  }
}
