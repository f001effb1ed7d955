import { afterEach, beforeAll, describe, expect, test } from "vitest";
import { language } from "./language";
import { isTranslatable, loadMessages, messageIn, toPieces } from "./messages";

const python = {
  text: "Python 3.11.2 at /usr/bin/python3",
  code: "system.python",
  params: { python_version: "3.11.2", executable: "/usr/bin/python3" },
};
const read = (message: Parameters<typeof toPieces>[0]) =>
  toPieces(message)
    .map((piece) => piece.text)
    .join("");

beforeAll(async () => {
  language.value = "zh";
  expect(toPieces(python)).toEqual([]);
  await loadMessages();
  language.value = "en";
});

afterEach(() => {
  language.value = "en";
});

describe("messages of the server", () => {
  test("are read from the fields beside the sentence", () => {
    const check = { fix: "Free some space.", fix_code: "a.b", fix_params: { n: 1 } };
    expect(messageIn(check, "fix")).toEqual({ text: "Free some space.", code: "a.b", params: { n: 1 } });
    expect(messageIn({}, "fix").text).toBe("");
  });

  test("are the sentence itself in English", () => {
    expect(toPieces(python)).toEqual([{ text: python.text, given: false }]);
  });

  test("are translated by their code, with what was filled in marked", () => {
    language.value = "zh";
    expect(read(python)).toBe("Python 3.11.2，位于 /usr/bin/python3");
    expect(toPieces(python)).toContainEqual({ text: "/usr/bin/python3", given: true });
  });

  test("translate a message inside a message", () => {
    language.value = "zh";
    const outer = { text: "x", code: "mcp.last_output", params: { message: python, output: "boom" } };
    expect(read(outer)).toBe("Python 3.11.2，位于 /usr/bin/python3 最后的输出：boom");
  });

  test("have one full stop where a sentence stands inside another", () => {
    language.value = "zh";
    const problem = { text: "x.", code: "manifest.markdown", params: {} };
    const fixed = { text: "x", code: "plugin.problem_and_fix", params: { problem, fix: "y" } };
    expect(read(fixed)).toMatch(/[^。]。修复方法：y$/);
  });

  test("end once where a question stands before a hint", () => {
    language.value = "zh";
    const message = { text: "x?", code: "hint.did_you_mean", params: { guess: "Read" } };
    const hint = { text: "y.", code: "hint.check_path", params: {} };
    expect(read({ text: "x? y.", code: "message.with_hint", params: { message, hint } })).toBe(
      "是否指 Read？请检查路径。",
    );
  });

  test("have no space between Chinese characters, and one around letters", () => {
    language.value = "zh";
    const name = { text: "the hunk", code: "patch.the_hunk", params: {} };
    const differ = (name: object | string) =>
      read({ text: "x", code: "edit.empty_lines_differ", params: { name: name as string } });
    expect(differ(name)).toMatch(/^与该块的差别/);
    expect(differ("old_string")).toMatch(/^与 old_string 的差别/);
  });

  test("stay as they are without a code, or with one that the page does not know", () => {
    language.value = "zh";
    const codes = ["newer.code", "constructor"].map((code) => ({ text: "ENOENT", code, params: {} }));
    for (const message of [{ text: "ENOENT" }, ...codes]) {
      expect(isTranslatable(message)).toBe(false);
      expect(toPieces(message)).toEqual([{ text: "ENOENT", given: true }]);
    }
  });
});
