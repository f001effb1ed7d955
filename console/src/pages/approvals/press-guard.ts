/** Ignores presses within half a second after a card has appeared or moved, because they were meant for something else:
 * an Enter at the end of a sentence, a tap on a card that has just moved away. */
const HELD_MS = 500;
let until = 0;

/** Starts ignoring presses, because something has moved. */
export function holdPresses(): void {
  until = performance.now() + HELD_MS;
}

/** True if a press on a card that has been visible since `since` is deliberate. */
export function isDeliberate(since: number): boolean {
  const now = performance.now();
  return now >= until && now - since >= HELD_MS;
}
