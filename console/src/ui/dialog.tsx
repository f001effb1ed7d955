/** A dialog in the middle, or a panel at the side (whole screen on a phone). Esc closes, the focus comes back. */
import type { ComponentChildren } from "preact";
import { useEffect, useId, useRef } from "preact/hooks";
import { dictionary } from "../lib/language";
import { useTitle } from "../lib/title";
import { IconButton } from "./button";
import { Toasts } from "./toasts";

const words = dictionary({ close: "Close" }, { close: "关闭" });

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
