import { afterEach, describe, expect, test } from "vitest";
import { language } from "./language";
import { told } from "./told";

const text = (sentence: string) =>
  told(sentence)
    ?.map((piece) => piece.text)
    .join("") ?? null;

afterEach(() => {
  language.value = "en";
});

describe("told", () => {
  test("marks what was put into a sentence of the server", () => {
    expect(told("Python 3.11.2 at /usr/bin/python3")).toEqual([
      { text: "Python ", given: false },
      { text: "3.11.2", given: true },
      { text: " at ", given: false },
      { text: "/usr/bin/python3", given: true },
    ]);
  });

  test("says it in Chinese, with what was put in at its place", () => {
    language.value = "zh";
    expect(text("Python 3.11.2 at /usr/bin/python3")).toBe("Python 3.11.2，位于 /usr/bin/python3");
    expect(text("Disable plugins or MCP servers that are not needed.")).toBe("请停用不需要的插件或 MCP 服务器。");
  });

  test("knows a sentence with a full stop that its shape has not", () => {
    language.value = "zh";
    expect(text("/home/me cannot be written.")).toBe("/home/me 无法写入。");
  });

  test("does not know the words of others", () => {
    expect(told("ENOENT: no such file or directory, open 'x'")).toBeNull();
    expect(told("x".repeat(3000))).toBeNull();
  });
});
