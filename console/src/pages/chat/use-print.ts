/** Ctrl+P prints the whole conversation: what nobody has come near yet is drawn first. */
import { useEffect } from "preact/hooks";
import { printWhen } from "../../lib/printing";

const UNDRAWN = ".chat-plain, .chat-chapter:empty, .rendered[aria-busy='true'] .pending, .stage > .faint";

export function usePrint(view: { current: HTMLElement | null }): void {
  useEffect(() => {
    const press = (event: KeyboardEvent) => {
      if (!(event.ctrlKey || event.metaKey) || event.key.toLowerCase() !== "p" || event.shiftKey) return;
      event.preventDefault();
      void printWhen(() => !view.current?.querySelector(UNDRAWN));
    };
    addEventListener("keydown", press);
    return () => removeEventListener("keydown", press);
  }, [view]);
}
