import { describe, expect, test } from "vitest";
import type { Values } from "../../ui/schema-form";
import { fitExamples, pickExampleFile } from "./example-file";

describe("the file that examples name", () => {
  test.each([
    [["LICENSE", "README.md", "a.md"], "README.md"],
    [["a.md", "readme.rst"], "readme.rst"],
    [["Makefile", "plan.txt"], "plan.txt"],
    [[".env", "Makefile"], "Makefile"],
    [[".env"], null],
    [[], null],
  ])("of %j is %j", (files, expected) => {
    expect(pickExampleFile(files)).toBe(expected);
  });

  test("stands in paths and in patches", () => {
    const examples: Values[] = [
      { path: "README.md" },
      { patch: "*** Update File: README.md\n" },
      { path: ".", depth: 2 },
    ];
    expect(fitExamples(examples, '计"$&划.md')).toEqual([
      { path: '计"$&划.md' },
      { patch: '*** Update File: 计"$&划.md\n' },
      { path: ".", depth: 2 },
    ]);
    expect(fitExamples(examples, null)).toEqual([{ path: ".", depth: 2 }]);
  });
});
