/** The focus is never lost: on a new page it goes to the heading, and when the element that has it leaves the page (a row
 * that was deleted, a dialog whose opener is gone) it goes to what is nearest to its place. */
const FOCUSABLE = "a[href], button:not(:disabled), input:not(:disabled), select, textarea, summary, [tabindex='0']";

interface Place {
  parent: Element;
  at: number;
}
let waiting: MutationObserver | null = null;
let focused: Element | null = null;
let places: readonly Place[] = [];

/** Put the focus on the heading of the page, as soon as there is one, unless something in the page has it or took it. */
export function focusHeading(): void {
  const main = document.getElementById("main");
  waiting?.disconnect();
  if (!main || document.querySelector("dialog[open]")) return;
  if (document.activeElement !== main && main.contains(document.activeElement)) return;
  const heading = main.querySelector<HTMLElement>("h1");
  if (heading) heading.tabIndex = -1;
  (heading ?? main).focus({ preventScroll: true });
  if (heading) return;
  waiting = new MutationObserver(() => {
    if (main.querySelector("h1") || document.activeElement !== main) focusHeading();
  });
  waiting.observe(main, { childList: true, subtree: true });
}

/** Watch for an element that leaves the page while it has the focus. */
export function keepFocus(): void {
  document.addEventListener("focusin", (event) => {
    focused = event.target as Element;
    places = placesOf(focused);
  });
  new MutationObserver(() => {
    if (focused && !focused.isConnected) requestAnimationFrame(restoreFocus);
  }).observe(document.body, { childList: true, subtree: true });
}

function placesOf(element: Element): Place[] {
  const found: Place[] = [];
  for (let child = element; child.parentElement; child = child.parentElement)
    found.push({ parent: child.parentElement, at: [...child.parentElement.children].indexOf(child) });
  return found;
}

function restoreFocus(): void {
  if (!focused || focused.isConnected) return;
  focused = null;
  if (document.activeElement !== document.body) return;
  const main = document.getElementById("main");
  const place = places.find(({ parent }) => parent.isConnected && main?.contains(parent));
  const near = place && (place.parent.children[place.at] ?? place.parent.lastElementChild);
  const target = near && (near.matches(FOCUSABLE) ? near : near.querySelector(FOCUSABLE));
  if (target instanceof HTMLElement) target.focus({ preventScroll: true });
  if (document.activeElement === document.body) focusHeading();
}
