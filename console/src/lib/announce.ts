/** Short sentences for those who hear the page instead of seeing it, about what has just happened. */
import { signal } from "@preact/signals";

export const announcement = signal({ text: "", count: 0 });

/** Say a sentence once what is being said has ended. The count lets the same sentence be said twice. */
export function announce(text: string): void {
  announcement.value = { text, count: announcement.peek().count + 1 };
}
