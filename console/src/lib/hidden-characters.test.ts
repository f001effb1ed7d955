import { describe, expect, test } from "vitest";
import { hasHidden, formatJson, revealHidden } from "./hidden-characters";

describe("visible", () => {
  test.each([
    ["\u202e", "⟦U+202E⟧"],
    ["\u200b", "⟦U+200B⟧"],
    ["\u0000", "⟦U+0000⟧"],
    ["\r", "⟦U+000D⟧"],
    ["\u00ad", "⟦U+00AD⟧"],
    ["\ufe0f", "⟦U+FE0F⟧"],
    ["\u{e0041}", "⟦U+E0041⟧"],
    ["\ud800", "⟦U+D800⟧"],
  ])("names what cannot be seen: %j", (hidden, name) => {
    expect(revealHidden(`a${hidden}b`)).toBe(`a${name}b`);
    expect(hasHidden(`a${hidden}b`)).toBe(true);
  });

  test.each(["plain", "tab\tand\nnewline", "中文，标点", "é e\u0301", "😀 👩🏽"])("leaves %j as it is", (text) => {
    expect(revealHidden(text)).toBe(text);
    expect(hasHidden(text)).toBe(false);
  });

  test("finds the same again and again", () => {
    expect([1, 2, 3].map(() => hasHidden("a\u200b"))).toEqual([true, true, true]);
  });
});

describe("pretty", () => {
  test("indents a value, and names what is hidden in it", () => {
    expect(formatJson({ path: "a\u202eb" })).toBe('{\n  "path": "a⟦U+202E⟧b"\n}');
  });

  test("shows text as it is, and nothing for what JSON has no word for", () => {
    expect(formatJson("a\nb")).toBe("a\nb");
    expect(formatJson(undefined)).toBe("");
  });
});
