import { describe, expect, it } from "vitest";
import { toDraft, toValue, type Kind } from "./setting-text";

describe("settings as text", () => {
  it("keep their value through an edit that changes nothing", () => {
    const values: [Kind, unknown][] = [
      ["text", "Asia/Shanghai"],
      ["number", 6005],
      ["bool", true],
      ["list", ["gb18030", "shift_jis"]],
      ["table", { Tarot: ["A", "B"], Other: ["C"] }],
    ];
    for (const [kind, value] of values) expect(toValue(kind, toDraft(kind, value))).toEqual(value);
  });

  it("write a switch of a table as a word", () => {
    expect(toDraft("table", { FileOperator: false })).toBe("FileOperator: false");
  });

  it("are removed when nothing is left of them", () => {
    for (const kind of ["text", "number", "list", "table"] as const) expect(toValue(kind, " \n")).toBeNull();
    expect(toDraft("text", null)).toBe("");
  });
});
