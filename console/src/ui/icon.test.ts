import { describe, expect, test } from "vitest";
import { signMeanings } from "../../style/signs";
import { SIGN_NAMES } from "./icon";

const SOURCES = import.meta.glob<string>(["../**/*.{ts,tsx}", "!../**/*.test.ts", "!./icon.tsx"], {
  query: "?raw",
  import: "default",
  eager: true,
});

/** Sources can name no other signs: that would be a type error. */
describe("the signs", () => {
  test.each(["en", "zh"] as const)("have one meaning each, written down (%s)", (lang) => {
    const meanings = signMeanings.both[lang === "en" ? 0 : 1];
    expect(Object.keys(meanings).sort()).toEqual([...SIGN_NAMES].sort());
    expect(new Set(Object.values(meanings)).size).toBe(SIGN_NAMES.length);
    for (const meaning of Object.values(meanings)) expect(meaning).not.toBe("");
  });

  test("are all used", () => {
    const all = Object.values(SOURCES).join("\n");
    expect(SIGN_NAMES.filter((name) => !new RegExp(`"${name}"|\\b${name}:`).test(all))).toEqual([]);
  });
});
