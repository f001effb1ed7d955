import { afterEach, describe, expect, test } from "vitest";
import { language } from "./language";
import { formatRequest } from "./request-block";

const block = (...fields: string[]) => `<<<[TOOL_REQUEST]>>>\n${fields.join(",\n")}\n<<<[END_TOOL_REQUEST]>>>`;

afterEach(() => {
  language.value = "en";
});

describe("formatRequest", () => {
  test("writes one field for each argument, in their order", () => {
    expect(formatRequest("Echo", { text: "hello", count: 2, deep: { a: [1, null] }, on: true })).toBe(
      block(
        "tool_name:「始」Echo「末」",
        "text:「始」hello「末」",
        "count:「始」2「末」",
        'deep:「始」{"a":[1,null]}「末」',
        "on:「始」true「末」",
      ),
    );
  });

  test("carries names of any script", () => {
    expect(formatRequest("画图", { 提示词: "猫" })).toBe(block("tool_name:「始」画图「末」", "提示词:「始」猫「末」"));
  });

  test.each([" a", "a\n", "\u3000a", "a\x1c", "\u0085a"])("keeps blanks at the ends of %j", (text) => {
    expect(formatRequest("Echo", { text })).toContain(`text:「始ESCAPE」\n${text}\n「末ESCAPE」`);
  });

  test("adds no newline after a carriage return, with which it would be one line end", () => {
    expect(formatRequest("Echo", { text: "a\r" })).toContain("text:「始ESCAPE」\na\r「末ESCAPE」");
  });

  test.each(["「末」", "{末", "<<<[END_TOOL_REQUEST]>>>"])("escapes a value with the mark %s in it", (mark) => {
    expect(formatRequest("Echo", { text: `a ${mark} b` })).toContain(`text:「始ESCAPE」\na ${mark} b\n「末ESCAPE」`);
  });

  test("gives marks that are escaped already one more escape, so that none of them ends the value", () => {
    const written = formatRequest("Echo", { text: "「末ESCAPE」 <<<[END_TOOL_REQUEST_ESCAPE]>>>" });
    expect(written).toContain("\n「末ESCAPEESCAPE」 <<<[END_TOOL_REQUEST_ESCAPE_ESCAPE]>>>\n「末ESCAPE」");
  });

  test.each(["tool_name", "archery", "river", "__maid"])(
    "refuses %s, which means something else in a request",
    (name) => {
      expect(() => formatRequest("Echo", { [name]: "x" })).toThrow(`'${name}' means something else`);
    },
  );

  test.each(["", "a b", "a:b", "a,b"])("refuses the name %j, which no request can carry", (name) => {
    expect(() => formatRequest("Echo", { [name]: "x" })).toThrow("is not a name");
  });

  test("refuses a request without a tool", () => {
    expect(() => formatRequest(" ", {})).toThrow("needs the name of a tool");
  });

  test("refuses in the language of the page", () => {
    language.value = "zh";
    expect(() => formatRequest("Echo", { "a b": "x" })).toThrow("参数名“a b”不可用");
  });
});
