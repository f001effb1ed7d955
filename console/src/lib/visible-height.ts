/** The height that an on-screen keyboard leaves. Chromium resizes the page (`interactive-widget`); Safari lays the keyboard
 * over it and says so here. The shell is that high, so that what one types into stays in view. */
const KEYBOARD = 80; // pixels; the bars of a browser are smaller, every keyboard is larger

export function followKeyboard(): void {
  const view = window.visualViewport;
  if (!view) return;
  const follow = () => {
    const isCovered = view.scale === 1 && innerHeight - view.height > KEYBOARD;
    const { style } = document.documentElement;
    if (isCovered) {
      style.setProperty("--visible-height", `${view.height}px`);
      scrollTo(0, 0); // Safari moves the page up to show what now fits
    } else style.removeProperty("--visible-height");
  };
  view.addEventListener("resize", follow);
}
