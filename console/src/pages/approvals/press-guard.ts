/** A press that comes within half a second after a card has come or moved was meant for something else: an Enter at
 * the end of a sentence, a tap on a card that has just slid away. It does nothing. */
const HELD_MS = 500;
let until = 0;

/** Something under the finger has changed. */
export function holdPresses(): void {
  until = performance.now() + HELD_MS;
}

/** Whether a press on a card that is there since `since` counts. */
export function isDeliberate(since: number): boolean {
  const now = performance.now();
  return now >= until && now - since >= HELD_MS;
}
