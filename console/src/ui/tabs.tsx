/** Tabs; the arrow keys move between them. Where there is no room for all, the open one is in sight. */
import { useEffect, useRef } from "preact/hooks";
import { formatNumber } from "../lib/language";

export function Tabs<T extends string>({
  tabs,
  open,
  onOpen,
  label,
}: {
  /** `mark`: what a dot on the tab says, such as that something is unsaved. */
  tabs: readonly { id: T; name: string; count?: number; mark?: string }[];
  open: T;
  onOpen: (id: T) => void;
  label: string;
}) {
  const strip = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const box = strip.current,
      tab = box?.querySelector<HTMLElement>("[aria-selected=true]");
    if (box && tab)
      box.scrollLeft = Math.max(
        Math.min(box.scrollLeft, tab.offsetLeft - box.offsetLeft - 24),
        tab.offsetLeft - box.offsetLeft + tab.offsetWidth + 24 - box.clientWidth,
      );
  }, [open]);
  const move = (event: KeyboardEvent) => {
    const by = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
    if (!by) return;
    event.preventDefault();
    const at = tabs.findIndex((tab) => tab.id === open);
    const next = tabs[(at + by + tabs.length) % tabs.length]!;
    onOpen(next.id);
    (event.currentTarget as HTMLElement).querySelector<HTMLElement>(`[data-tab="${next.id}"]`)?.focus();
  };
  return (
    <div ref={strip} class="tabs" role="tablist" aria-label={label} onKeyDown={move}>
      {tabs.map((tab) => (
        <button
          key={tab.id}
          type="button"
          role="tab"
          data-tab={tab.id}
          aria-selected={tab.id === open}
          tabIndex={tab.id === open ? 0 : -1}
          onClick={() => onOpen(tab.id)}
        >
          {tab.name}
          {tab.count !== undefined && <span class="count">{formatNumber(tab.count)}</span>}
          {tab.mark && (
            <span class="tab-mark" title={tab.mark}>
              <span class="hush">{tab.mark}</span>
            </span>
          )}
        </button>
      ))}
    </div>
  );
}
