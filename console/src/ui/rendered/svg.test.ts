import { describe, expect, test } from "vitest";
import { isDrawing } from "./svg";

describe("isDrawing", () => {
  test("takes a tree of tags, attributes and children", () => {
    expect(isDrawing(["svg", { viewBox: "0 0 1 1" }, [["text", {}, ["hello"]]]])).toBe(true);
  });

  test.each([null, 3, {}, [], ["svg"], ["svg", null, []], ["svg", {}, "text"], [1, {}, []], ["svg", {}, [["g", {}]]]])(
    "refuses %j",
    (given) => {
      expect(isDrawing(given)).toBe(false);
    },
  );

  test("refuses a drawing with too many nodes", () => {
    expect(isDrawing(["svg", {}, Array.from({ length: 19_000 }, () => ["g", {}, []])])).toBe(true);
    expect(
      isDrawing([
        "svg",
        {},
        Array.from({ length: 2 }, () => ["g", {}, Array.from({ length: 15_000 }, () => ["g", {}, []])]),
      ]),
    ).toBe(false);
  });

  test("refuses a drawing with too much text", () => {
    const long = "x".repeat(5_000_000);
    expect(isDrawing(["svg", {}, [long, ["g", {}, []]]])).toBe(true);
    expect(
      isDrawing([
        "svg",
        {},
        [
          ["g", { d: long }, [long]],
          ["g", {}, []],
        ],
      ]),
    ).toBe(false);
  });

  test("refuses a drawing with many copies, which would be drawn once for each way to them", () => {
    const copies = (n: number) => ["svg", {}, Array.from({ length: n }, () => ["use", { href: "#a" }, []])];
    expect(isDrawing(copies(50))).toBe(true);
    expect(isDrawing(copies(51))).toBe(false);
  });
});
