/** A list of any length of which only what can be seen is in the page. Rows have one height. Who has scrolled down
 * keeps reading the same rows when new ones come in above. */
import { useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import { useEvent } from "../lib/use-event";

const AROUND = 8;
const STEP = 4;

export function VirtualList<T>({
  rows,
  height,
  draw,
  onEnd,
  label,
  keyOf,
}: {
  rows: readonly T[];
  height: number;
  draw: (row: T, at: number) => ComponentChildren;
  onEnd?: () => void;
  label: string;
  keyOf: (row: T) => string;
}) {
  const box = useRef<HTMLDivElement>(null);
  const span = useSignal({ top: 0, seen: 900 });
  const latest = useRef(rows);
  latest.current = rows;
  const first = useRef({ key: "", at: 0 });
  const nameOf = useEvent(keyOf);
  useEffect(() => {
    const node = box.current!;
    const look = () => {
      // In steps of a few rows: not every pixel of a scroll is worth drawing them all again.
      const top = Math.floor(node.scrollTop / (STEP * height)) * STEP * height;
      const seen = node.clientHeight || 900;
      if (top !== span.peek().top || seen !== span.peek().seen) span.value = { top, seen };
      const at = Math.floor(node.scrollTop / height);
      const row = latest.current[at];
      first.current = { key: row === undefined ? "" : nameOf(row), at };
      if (onEnd && node.scrollTop + node.clientHeight > node.scrollHeight - 600) onEnd();
    };
    look();
    const sizes = new ResizeObserver(look);
    sizes.observe(node);
    node.addEventListener("scroll", look, { passive: true });
    return () => {
      sizes.disconnect();
      node.removeEventListener("scroll", look);
    };
  }, [height, nameOf, onEnd, rows.length, span]);
  useLayoutEffect(() => {
    const node = box.current!;
    const { key, at } = first.current;
    if (!key || node.scrollTop <= 0) return;
    const now = rows.findIndex((row) => nameOf(row) === key);
    if (now < 0 || now === at) return;
    first.current = { key, at: now };
    node.scrollTop += (now - at) * height;
  }, [height, nameOf, rows]);
  const from = Math.max(0, Math.floor(span.value.top / height) - AROUND);
  const to = Math.min(rows.length, Math.ceil((span.value.top + span.value.seen) / height) + STEP + AROUND);
  return (
    <div ref={box} class="virtual" role="list" aria-label={label} tabIndex={-1}>
      <div style={{ height: `${rows.length * height}px`, position: "relative" }} role="presentation">
        {rows.slice(from, to).map((row, at) => (
          <div
            key={keyOf(row)}
            role="listitem"
            aria-setsize={rows.length}
            aria-posinset={from + at + 1}
            style={{ position: "absolute", insetInline: 0, top: `${(from + at) * height}px`, height: `${height}px` }}
          >
            {draw(row, from + at)}
          </div>
        ))}
      </div>
    </div>
  );
}
