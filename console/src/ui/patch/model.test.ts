import { describe, expect, test } from "vitest";
import type { PatchHunk } from "toolyard-client";
import { countLines, differingRange, hunkHeader, linesOf, splitRows, unifiedRows } from "./model";

const HUNK: PatchHunk = {
  oldStart: 10,
  oldLines: 4,
  newStart: 20,
  newLines: 4,
  lines: [" a", "-b", "-c", "+B", " d", "+e"],
};

test("headOf writes the places of a hunk as diff does", () => expect(hunkHeader(HUNK)).toBe("@@ -10,4 +20,4 @@"));

test("count tells how many lines came and went", () =>
  expect(countLines([HUNK, HUNK])).toEqual({ added: 4, removed: 4 }));

describe("linesOf", () => {
  test("numbers the lines of both sides", () => {
    expect(linesOf(HUNK).map((line) => [line.kind, line.text, line.old, line.new])).toEqual([
      [" ", "a", 10, 20],
      ["-", "b", 11, null],
      ["-", "c", 12, null],
      ["+", "B", null, 21],
      [" ", "d", 13, 22],
      ["+", "e", null, 23],
    ]);
  });

  test("pairs a line that went with the one that came in its place", () => {
    const [, b, c, B, , e] = linesOf(HUNK);
    expect([b!.pair, B!.pair]).toEqual(["B", "b"]);
    expect([c!.pair, e!.pair]).toEqual([null, null]);
  });

  test("marks the line after which the file has no newline, and makes no line of the mark", () => {
    const lines = linesOf({ ...HUNK, lines: ["-a", "\\ No newline at end of file", "+a"] });
    expect(lines.map((line) => [line.kind, line.endless])).toEqual([
      ["-", true],
      ["+", false],
    ]);
  });

  test("keeps signs that are part of the text", () => {
    expect(linesOf({ ...HUNK, lines: ["++x", "--y"] }).map((line) => line.text)).toEqual(["+x", "-y"]);
  });
});

test("unified has a head for each hunk and a row for each line", () => {
  expect(unifiedRows([HUNK, HUNK]).map((row) => row.head !== null)).toEqual([
    true,
    ...Array<boolean>(6).fill(false),
    true,
    ...Array<boolean>(6).fill(false),
  ]);
});

test("split sets what came beside what went, and leaves a gap where one side has more", () => {
  const sides = splitRows([HUNK]).map((row) =>
    "left" in row ? [row.left?.text ?? null, row.right?.text ?? null] : row.head,
  );
  expect(sides).toEqual(["@@ -10,4 +20,4 @@", ["a", "a"], ["b", "B"], ["c", null], ["d", "d"], [null, "e"]]);
});

describe("differing", () => {
  const marked = (text: string, pair: string) => {
    const found = differingRange(text, pair);
    return found && text.slice(...found);
  };

  test("finds the part in which two lines differ", () => {
    expect(marked("const a = 1;", "const b = 1;")).toBe("a");
    expect(marked("print(x, y)", "print(x)")).toBe(", y");
    expect(marked("print(x)", "print(x, y)")).toBe("");
  });

  test("finds nothing where little is alike", () => expect(differingRange("abc", "xyz")).toBeNull());

  test("never cuts a character in two", () => {
    expect(marked("smile 😀 here", "smile 😁 here")).toBe("😀");
    expect(marked("😀 is the same", "🐀 is the same")).toBe("😀");
  });
});
