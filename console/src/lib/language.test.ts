import { afterEach, describe, expect, test } from "vitest";
import { formatNumber, joinWords, language, locale, plural } from "./language";

afterEach(() => {
  language.value = "en";
});

describe("counts and numbers", () => {
  const files = { one: "# file", other: "# files" };

  test.each([
    [0, "0 files"],
    [1, "1 file"],
    [2, "2 files"],
    [1234, "1,234 files"],
  ])("%d has its form", (n, text) => expect(plural(n, files)).toBe(text));

  test("have one form in Chinese", () => {
    language.value = "zh";
    expect(plural(1, { other: "# 个文件" })).toBe("1 个文件");
    expect(plural(1234, { other: "# 个文件" })).toBe("1,234 个文件");
  });

  test("are joined as the language does it", () => {
    expect(joinWords(["a", "b"])).toBe("a, b");
    language.value = "zh";
    expect(joinWords(["甲", "乙"])).toBe("甲、乙");
  });

  test("have the digits that are asked for", () => {
    expect(formatNumber(1234.567, 1)).toBe("1,234.6");
    expect(formatNumber(7, 1)).toBe("7.0");
  });

  test.each(["en", "zh"] as const)("are in %s what the language makes of them", (chosen) => {
    language.value = chosen;
    const format = new Intl.NumberFormat(locale(), { maximumFractionDigits: 0 });
    for (const n of [0, 7, 999, 1000, 12345, -3, -999, -1000, 0.6, 999.5])
      expect(formatNumber(n)).toBe(format.format(n));
  });
});
