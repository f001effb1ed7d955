/** A small menu behind a "more" button. It closes when something is chosen, by Esc, or when the focus goes elsewhere. */
import type { ComponentChildren } from "preact";
import { useRef } from "preact/hooks";
import { toastError } from "../../ui/button";
import { Icon, type Sign } from "../../ui/icon";

export interface Choice {
  name: string;
  sign: Sign;
  run?: () => unknown;
  href?: string;
}

export function Menu({
  label,
  choices,
  children,
}: {
  label: string;
  choices: readonly Choice[];
  children?: ComponentChildren;
}) {
  const box = useRef<HTMLDetailsElement>(null);
  const close = () => {
    if (box.current) box.current.open = false;
  };
  // Where there is no room below, it opens upwards.
  const place = () => {
    const list = box.current?.querySelector("ul");
    if (!list || !box.current?.open) return;
    list.classList.remove("up");
    const end = document.querySelector("main")?.getBoundingClientRect().bottom ?? innerHeight;
    list.classList.toggle("up", list.getBoundingClientRect().bottom > end - 4);
  };
  const choose = async (choice: Choice) => {
    close();
    try {
      await choice.run?.();
    } catch (error) {
      toastError(error);
    }
  };
  return (
    <details
      ref={box}
      class="tools-menu"
      onToggle={place}
      onKeyDown={(event) => {
        if (event.key === "Escape" && box.current?.open) {
          event.stopPropagation();
          close();
          box.current.querySelector("summary")?.focus();
        }
      }}
      onFocusOut={(event) => {
        if (!box.current?.contains(event.relatedTarget as Node | null)) close();
      }}
    >
      <summary
        class={children ? "button" : "button icon-only quiet"}
        aria-label={children ? undefined : label}
        title={label}
        data-given={!children || undefined}
      >
        {children ?? <Icon sign="more" />}
      </summary>
      <ul>
        {choices.map((choice) => (
          <li key={choice.name}>
            {choice.href ? (
              <a href={choice.href} onClick={close}>
                <Icon sign={choice.sign} size={16} />
                {choice.name}
              </a>
            ) : (
              <button type="button" onMouseDown={(event) => event.preventDefault()} onClick={() => void choose(choice)}>
                <Icon sign={choice.sign} size={16} />
                {choice.name}
              </button>
            )}
          </li>
        ))}
      </ul>
    </details>
  );
}
