/** Keys: `/` search, `g` and a letter for a page, `j`/`k` along a list, `Esc` closes, `?` help, Ctrl+K the finder.
 * Nothing happens while somebody types into a field. */
import { signal } from "@preact/signals";
import { navigate } from "./router";

export const finder = signal(false);
export const help = signal(false);
let afterG = 0;

export function isTyping(target: EventTarget | null): boolean {
  return (
    target instanceof HTMLElement && (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName))
  );
}

/** `pages` has the path to which each letter leads. */
export function listenForShortcuts(pages: ReadonlyMap<string, string>): void {
  addEventListener("keydown", (event) => {
    if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k") {
      event.preventDefault();
      finder.value = !finder.value;
      return;
    }
    if (
      event.ctrlKey ||
      event.metaKey ||
      event.altKey ||
      isTyping(event.target) ||
      document.querySelector("dialog[open]")
    )
      return;
    const page = Date.now() - afterG < 1200 && pages.get(event.key);
    if (page) {
      afterG = 0;
      event.preventDefault();
      return navigate(page);
    }
    if (event.key === "g") afterG = Date.now();
    else if (event.key === "?") help.value = true;
    else if (event.key === "/") {
      const field = document.querySelector<HTMLElement>("[data-search]");
      if (field) {
        event.preventDefault();
        field.focus();
      }
    } else if (event.key === "j" || event.key === "k") moveFocus(event.key === "j" ? 1 : -1);
  });
}

/** Move the focus along the rows of the page, `[data-row]`. */
function moveFocus(by: number): void {
  const rows = [...document.querySelectorAll<HTMLElement>("[data-row]")];
  if (!rows.length) return;
  const at = rows.indexOf(document.activeElement as HTMLElement);
  const next = rows[at < 0 ? 0 : Math.max(0, Math.min(rows.length - 1, at + by))]!;
  next.focus();
  next.scrollIntoView({ block: "nearest" });
}
