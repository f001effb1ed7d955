/** A grid, one of perhaps many on a page, of which only the lines near the view are in the page; blanks as high as the
 * rest keep its place. */
import { useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";

const AROUND_PX = 1000;
const STEP = 4; // lines: not every pixel of a scroll is worth drawing them all again

export function VirtualGrid<T>({
  entries,
  draw,
  class: name,
  whole,
}: {
  entries: readonly T[];
  draw: (entry: T) => ComponentChildren;
  class: string;
  /** Draws all of them: what is short needs none of this. */
  whole: boolean;
}) {
  const box = useRef<HTMLUListElement>(null);
  const span = useSignal({ from: 0, to: 0, columns: 1 });
  const line = useRef(150); // px, measured as soon as there are some
  useLayoutEffect(() => {
    const node = box.current!;
    if (whole) return;
    const look = () => {
      const style = getComputedStyle(node);
      const columns = style.gridTemplateColumns.split(" ").length;
      const drawn = node.querySelectorAll(":scope > :not(.virtual-blank)");
      if (drawn.length >= columns) {
        const high = drawn[drawn.length - 1]!.getBoundingClientRect().bottom - drawn[0]!.getBoundingClientRect().top;
        line.current = (high + (parseFloat(style.rowGap) || 0)) / Math.ceil(drawn.length / columns);
      }
      const toEntry = (px: number) => Math.max(0, Math.floor(px / line.current / STEP) * STEP * columns);
      const top = -node.getBoundingClientRect().top;
      const end = top + innerHeight + AROUND_PX;
      const from = toEntry(top - AROUND_PX);
      const to = end < 0 ? 0 : toEntry(end) + STEP * columns;
      const now = span.peek();
      if (from !== now.from || to !== now.to || columns !== now.columns) span.value = { from, to, columns };
    };
    look();
    // What stands above may grow or shrink too.
    const sizes = new ResizeObserver(look);
    sizes.observe(node.closest("main") ?? node);
    sizes.observe(node.closest(".page") ?? node);
    document.addEventListener("scroll", look, { passive: true, capture: true });
    return () => {
      sizes.disconnect();
      document.removeEventListener("scroll", look, { capture: true });
    };
  }, [whole, entries.length, span]);
  const { from, to, columns } = whole ? { from: 0, to: entries.length, columns: 1 } : span.value;
  const blank = (count: number) =>
    count > 0 && (
      <li
        class="virtual-blank"
        aria-hidden="true"
        style={{ height: `${Math.ceil(count / columns) * line.current}px` }}
      />
    );
  return (
    <ul ref={box} class={name}>
      {blank(Math.min(from, entries.length))}
      {entries.slice(from, to).map(draw)}
      {blank(entries.length - to)}
    </ul>
  );
}
