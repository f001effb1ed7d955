/** The hunks of `structuredPatch` as lines that know their numbers, and as pairs of sides. Nothing is computed that
 * the hunk does not say: numbers count on from `oldStart` and `newStart`. */
import type { PatchHunk } from "toolyard-client";

export interface PatchFile {
  path: string;
  from?: string;
  operation?: string;
  binary?: boolean;
  hunks: readonly PatchHunk[];
}

export interface Line {
  kind: " " | "+" | "-";
  text: string;
  old: number | null;
  new: number | null;
  /** The line at the other side that this one became or came from. */
  pair: string | null;
  endless: boolean;
}
export type Row = { head: string } | { head: null; line: Line } | { head: null; left: Line | null; right: Line | null };
export interface Count {
  added: number;
  removed: number;
}

export function countLines(hunks: readonly PatchHunk[]): Count {
  let added = 0;
  let removed = 0;
  for (const hunk of hunks)
    for (const line of hunk.lines) {
      if (line[0] === "+") added += 1;
      else if (line[0] === "-") removed += 1;
    }
  return { added, removed };
}

export function hunkHeader(hunk: PatchHunk): string {
  return `@@ -${hunk.oldStart},${hunk.oldLines} +${hunk.newStart},${hunk.newLines} @@`;
}

export function linesOf(hunk: PatchHunk): Line[] {
  const lines: Line[] = [];
  let old = hunk.oldStart;
  let now = hunk.newStart;
  for (const raw of hunk.lines) {
    const kind = raw[0];
    if (kind === "\\") {
      const last = lines[lines.length - 1];
      if (last) last.endless = true;
      continue;
    }
    const sign = kind === "+" || kind === "-" ? kind : " ";
    lines.push({
      kind: sign,
      text: raw.slice(1),
      old: sign === "+" ? null : old++,
      new: sign === "-" ? null : now++,
      pair: null,
      endless: false,
    });
  }
  for (const { removed, added } of groupLines(lines))
    for (let at = 0; at < Math.min(removed.length, added.length); at += 1) {
      removed[at]!.pair = added[at]!.text;
      added[at]!.pair = removed[at]!.text;
    }
  return lines;
}

export function unifiedRows(hunks: readonly PatchHunk[]): Row[] {
  return hunks.flatMap((hunk): Row[] => [
    { head: hunkHeader(hunk) },
    ...linesOf(hunk).map((line): Row => ({ head: null, line })),
  ]);
}

export function splitRows(hunks: readonly PatchHunk[]): Row[] {
  const rows: Row[] = [];
  for (const hunk of hunks) {
    rows.push({ head: hunkHeader(hunk) });
    for (const run of groupLines(linesOf(hunk))) {
      for (const line of run.same) rows.push({ head: null, left: line, right: line });
      for (let at = 0; at < Math.max(run.removed.length, run.added.length); at += 1)
        rows.push({ head: null, left: run.removed[at] ?? null, right: run.added[at] ?? null });
    }
  }
  return rows;
}

interface Run {
  same: Line[];
  removed: Line[];
  added: Line[];
}

/** Lines in stretches: some that stay, then all that went and came in their place. */
function groupLines(lines: readonly Line[]): Run[] {
  const groups: Run[] = [];
  let run: Run = { same: [], removed: [], added: [] };
  for (const line of lines) {
    const isNew =
      line.kind === " " ? run.removed.length + run.added.length > 0 : line.kind === "-" && run.added.length > 0;
    if (isNew) {
      groups.push(run);
      run = { same: [], removed: [], added: [] };
    }
    (line.kind === " " ? run.same : line.kind === "-" ? run.removed : run.added).push(line);
  }
  groups.push(run);
  return groups;
}

/** The range in which a line differs from its pair, without their common prefix and suffix. Null if they have little in
 * common. */
export function differingRange(text: string, pair: string): [number, number] | null {
  const shorter = Math.min(text.length, pair.length);
  let start = 0;
  while (start < shorter && text[start] === pair[start]) start += 1;
  if (isLow(text.charCodeAt(start)) || isLow(pair.charCodeAt(start))) start -= 1;
  start = Math.max(0, start);
  let end = 0;
  while (end < shorter - start && text[text.length - 1 - end] === pair[pair.length - 1 - end]) end += 1;
  if (end && isLow(text.charCodeAt(text.length - end))) end -= 1;
  if (start + end < Math.max(text.length, pair.length) * 0.3) return null;
  return [start, text.length - end];
}

/** The second half of a character of two units. */
function isLow(unit: number): boolean {
  return unit >= 0xdc00 && unit <= 0xdfff;
}
