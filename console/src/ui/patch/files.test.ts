import { expect, test } from "vitest";
import { filesFrom, filesOf } from "./files";

const HUNK = { oldStart: 1, oldLines: 1, newStart: 1, newLines: 1, lines: ["-a", "+b"] };

test("a result with one patch is about the file that the call was about", () => {
  expect(filesOf({ data: { structured_patch: [HUNK] }, context: { path_resolved: "src/a.py" } })).toEqual([
    { path: "src/a.py", from: undefined, operation: undefined, binary: false, hunks: [HUNK] },
  ]);
});

test("a result with many patches has each with its own path, however deep", () => {
  const data = {
    results: [
      { file_path: "a", result: { structured_patch: [HUNK] } },
      { path: "b", from: "c", operation: "rename", structured_patch: [] },
    ],
  };
  expect(
    filesOf({ data, context: {} }).map((file) => [file.path, file.from, file.operation, file.hunks.length]),
  ).toEqual([
    ["a", undefined, undefined, 1],
    ["b", "c", "rename", 0],
  ]);
});

test("what is no hunk is left out", () => {
  expect(filesFrom([{ path: "a", structured_patch: [HUNK, null, "x", { lines: "no" }] }])[0]!.hunks).toEqual([HUNK]);
});

test.each([null, undefined, "text", 3, [], {}, { data: { structured_patch: "x" } }])("%j tells of no file", (value) => {
  expect(filesOf(value)).toEqual([]);
});

test("it does not look without end", () => {
  let deep: object = { structured_patch: [HUNK] };
  for (let depth = 0; depth < 20; depth += 1) deep = { deep };
  expect(filesFrom(deep)).toEqual([]);
});
