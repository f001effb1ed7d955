/** A dialog in the middle, or a panel at the side (whole screen on a phone). Its first field has the focus, so that one
 * can write at once. Esc closes, the focus comes back. */
import type { ComponentChildren } from "preact";
import { useEffect, useId, useRef } from "preact/hooks";
import { dictionary } from "../lib/language";
import { useTitle } from "../lib/title";
import { IconButton } from "./button";
import { Toasts } from "./toasts";

const words = dictionary({ close: "Close" }, { close: "关闭" });
const FIELD = ["radio", "checkbox", "file", "hidden"].reduce(
  (field, type) => `${field}:not([type=${type}])`,
  ".body :is(input, select, textarea):not(:disabled)",
);
const touchKeyboard = matchMedia("(hover: none) and (pointer: coarse)"); // it would cover what the dialog says

export function Dialog({
  title,
  onClose,
  children,
  side = false,
  footer,
  head,
  given = false,
}: {
  title: string;
  given?: boolean;
  onClose: () => void;
  children: ComponentChildren;
  side?: boolean;
  footer?: ComponentChildren;
  head?: ComponentChildren;
}) {
  const box = useRef<HTMLDialogElement>(null);
  const name = useId();
  useTitle(title, 1);
  useEffect(() => {
    const before = document.activeElement as HTMLElement | null;
    box.current?.showModal();
    if (!touchKeyboard.matches) focusField(box.current?.querySelector<HTMLElement>(FIELD));
    return () => before?.focus?.();
  }, []);
  return (
    <dialog
      ref={box}
      class={side ? "side" : "centre"}
      aria-labelledby={name}
      onCancel={(event) => {
        event.preventDefault();
        onClose();
      }}
      onClick={(event) => {
        if (event.target === box.current) onClose();
      }}
    >
      <div class="sheet">
        <header>
          <h2 id={name} class="grow cut" dir="auto" title={title} data-given={given || undefined}>
            {title}
          </h2>
          {head}
          <IconButton label={words().close} sign="close" onClick={onClose} />
        </header>
        <div class="body">{children}</div>
        {footer && <footer>{footer}</footer>}
      </div>
      <Toasts />
    </dialog>
  );
}

function focusField(field: HTMLElement | null | undefined): void {
  field?.focus();
  if (field instanceof HTMLInputElement) field.select();
}
