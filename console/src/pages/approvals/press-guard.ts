/** Ignores presses within half a second after a card has appeared or moved, because they were meant for something else:
 * an Enter at the end of a sentence, a tap on a card that has just moved away. */
import { signal } from "@preact/signals";

const HELD_MS = 500;
let until = 0;
let timer: ReturnType<typeof setTimeout>;

/** True while presses are ignored, so that buttons can show it. */
export const areHeld = signal(false);

/** Starts ignoring presses, because something has appeared or moved. */
export function holdPresses(): void {
  until = performance.now() + HELD_MS;
  areHeld.value = true;
  clearTimeout(timer);
  timer = setTimeout(() => (areHeld.value = false), HELD_MS);
}

/** True if a press is deliberate. */
export function isDeliberate(): boolean {
  return performance.now() >= until;
}
