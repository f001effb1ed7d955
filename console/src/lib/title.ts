/** The title of the window: what is open, on which page. A page or a dialog says its part with `useTitle`. */
import { computed, signal } from "@preact/signals";
import { useEffect } from "preact/hooks";

interface Part {
  text: string;
  depth: number;
}
const parts = signal<readonly Part[]>([]);

/** The parts that are said now, the innermost first. */
export const titleParts = computed(() => [...parts.value].sort((a, b) => b.depth - a.depth).map((part) => part.text));

/** Name what is shown; empty names nothing. What lies over the page, such as a dialog, has a greater depth. */
export function useTitle(text: string, depth = 0): void {
  useEffect(() => {
    if (!text) return;
    const part = { text, depth };
    parts.value = [...parts.peek(), part];
    return () => void (parts.value = parts.peek().filter((other) => other !== part));
  }, [text, depth]);
}
