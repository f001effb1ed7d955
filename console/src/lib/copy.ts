/** The one way to the clipboard. Browsers offer theirs to pages of HTTPS and of this machine alone; elsewhere the text is
 * selected and copied as by hand. */
import { dictionary } from "./language";
import { showToast } from "./toast";

const words = dictionary(
  { refused: "The browser did not allow copying. Select the text and copy it by hand." },
  { refused: "浏览器不允许复制，请选中文本手动复制。" },
);

/** Copy a text. If the browser refuses, a toast says so and the answer is false. */
export async function copyText(text: string): Promise<boolean> {
  const copied = (await copyWithClipboard(text)) || copySelected(text);
  if (!copied) showToast(words().refused, "bad");
  return copied;
}

async function copyWithClipboard(text: string): Promise<boolean> {
  try {
    // Undefined on a page without HTTPS, whatever its type says.
    await (navigator.clipboard as Clipboard | undefined)!.writeText(text);
    return true;
  } catch {
    return false;
  }
}

function copySelected(text: string): boolean {
  const focused = document.activeElement as HTMLElement | null;
  const box = document.createElement("textarea");
  box.value = text;
  box.readOnly = true; // no keyboard on a phone
  box.className = "hush";
  // Outside an open dialog nothing can be selected.
  const place = focused?.closest("dialog") ?? [...document.querySelectorAll("dialog[open]")].at(-1) ?? document.body;
  place.append(box);
  box.select();
  try {
    return document.execCommand("copy"); // deprecated, and the only way without HTTPS
  } finally {
    box.remove();
    focused?.focus({ preventScroll: true });
  }
}
