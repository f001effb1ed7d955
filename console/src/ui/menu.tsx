/** A menu behind a "more" button, above everything else on the page. Esc, a press elsewhere and a choice close it. */
import { useSignal } from "@preact/signals";
import { useId, useLayoutEffect, useRef } from "preact/hooks";
import { toastError } from "./button";
import { Icon, type Sign } from "./icon";

export interface MenuItem {
  name: string;
  sign: Sign;
  danger?: boolean;
  run: () => unknown;
}

const EDGE = 8; // pixels to the edge of the window

/** `given`: what somebody wrote stands in the label. */
export function MoreMenu({
  label,
  items,
  given = false,
}: {
  label: string;
  items: readonly MenuItem[];
  given?: boolean;
}) {
  const id = useId();
  const button = useRef<HTMLButtonElement>(null);
  const list = useRef<HTMLDivElement>(null);
  const open = useSignal(false);
  const isOpen = open.value;
  useLayoutEffect(() => {
    if (!isOpen) return;
    const from = button.current!.getBoundingClientRect(),
      { offsetWidth: width, offsetHeight: height, style } = list.current!;
    const below = from.bottom + 4;
    const top = below + height > innerHeight - EDGE ? Math.max(EDGE, from.top - height - 4) : below;
    style.top = `${top}px`;
    style.left = `${Math.max(EDGE, Math.min(from.right - width, innerWidth - width - EDGE))}px`;
    list.current!.querySelector("button")?.focus();
  }, [isOpen]);
  const move = (event: KeyboardEvent) => {
    const buttons = [...list.current!.querySelectorAll("button")];
    const at = buttons.indexOf(document.activeElement as HTMLButtonElement);
    const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: -1 }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    buttons.at(to % buttons.length)?.focus();
  };
  const choose = async (item: MenuItem) => {
    list.current?.hidePopover();
    button.current?.focus();
    try {
      await item.run();
    } catch (error) {
      toastError(error);
    }
  };
  return (
    <>
      <button
        ref={button}
        id={`${id}-button`}
        type="button"
        class="button icon-only quiet"
        aria-label={label}
        title={label}
        data-given={given || undefined}
        aria-haspopup="menu"
        aria-expanded={isOpen}
        popovertarget={id}
      >
        <Icon sign="more" />
      </button>
      <div
        ref={list}
        id={id}
        popover="auto"
        role="menu"
        aria-labelledby={`${id}-button`}
        class="more-menu"
        onKeyDown={move}
        onToggle={(event) => (open.value = event.newState === "open")}
      >
        {isOpen &&
          items.map((item) => (
            <button
              key={item.name}
              type="button"
              role="menuitem"
              class={item.danger ? "danger" : ""}
              onClick={() => void choose(item)}
            >
              <Icon sign={item.sign} size={16} />
              {item.name}
            </button>
          ))}
      </div>
    </>
  );
}
