/** A stretch of rows that is in the page only while it can be seen; else one empty row of the same height stands for
 * it. Lines may wrap, so heights are measured where they were seen and guessed where not. */
import { useSignal } from "@preact/signals";
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import { Text } from "./cell";
import type { Line, Row } from "./model";

export const BLOCK = 50;
const LINE_PX = 21;
const NEAR = "500px 0px";

export function Block({
  rows,
  first,
  split,
  spaces,
  shown,
}: {
  rows: readonly Row[];
  first: number;
  split: boolean;
  spaces: boolean;
  shown: boolean;
}) {
  const body = useRef<HTMLTableSectionElement>(null);
  const seen = useSignal(shown);
  const height = useRef(rows.length * LINE_PX);
  useEffect(() => {
    if (shown) return;
    const look = new IntersectionObserver((all) => (seen.value = all[all.length - 1]!.isIntersecting), {
      rootMargin: NEAR,
      scrollMargin: NEAR,
    });
    look.observe(body.current!);
    return () => look.disconnect();
  }, [seen, shown]);
  useLayoutEffect(() => {
    if (seen.value) height.current = body.current!.getBoundingClientRect().height || height.current;
  });
  return (
    <tbody ref={body}>
      {seen.value ? (
        rows.map((row, at) => <PatchRow key={at} row={row} index={first + at + 2} split={split} spaces={spaces} />)
      ) : (
        <tr aria-hidden="true">
          <td colSpan={4} style={{ height: `${height.current}px`, padding: 0 }} />
        </tr>
      )}
    </tbody>
  );
}

function PatchRow({ row, index, split, spaces }: { row: Row; index: number; split: boolean; spaces: boolean }) {
  if (row.head !== null)
    return (
      <tr class="patch-hunk" aria-rowindex={index}>
        <td colSpan={4}>{row.head}</td>
      </tr>
    );
  if ("line" in row) return <UnifiedRow line={row.line} index={index} spaces={spaces} />;
  return (
    <tr aria-rowindex={index}>
      {split && (
        <>
          <SideCells line={row.left} side="old" spaces={spaces} />
          <SideCells line={row.right} side="new" spaces={spaces} />
        </>
      )}
    </tr>
  );
}

function UnifiedRow({ line, index, spaces }: { line: Line; index: number; spaces: boolean }) {
  return (
    <tr class={tone(line)} aria-rowindex={index}>
      <td class="patch-number">{line.old}</td>
      <td class="patch-number">{line.new}</td>
      <td class="patch-sign">{line.kind}</td>
      <td class="patch-text" data-given>
        <Text line={line} spaces={spaces} />
      </td>
    </tr>
  );
}

function SideCells({ line, side, spaces }: { line: Line | null; side: "old" | "new"; spaces: boolean }) {
  if (!line)
    return (
      <>
        <td class="patch-number patch-none" />
        <td class="patch-none" />
      </>
    );
  return (
    <>
      <td class={`patch-number ${tone(line)}`}>{line[side]}</td>
      <td class={`patch-text patch-half ${tone(line)}`} data-given>
        <span class="patch-mark">{line.kind}</span>
        <Text line={line} spaces={spaces} />
      </td>
    </>
  );
}

function tone(line: Line): string {
  return line.kind === "+" ? "patch-add" : line.kind === "-" ? "patch-del" : "";
}
