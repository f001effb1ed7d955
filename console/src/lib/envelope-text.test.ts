import { afterEach, expect, it } from "vitest";
import { failureAdvice, readableText, resultText } from "./envelope-text";
import { language } from "./language";
import { loadMessages } from "./messages";

afterEach(() => {
  language.value = "en";
});

const LISTED = {
  text: "Listed 3 entries in '.'.",
  context: {
    text_code: "ls.listed",
    text_params: { entries: { text: "3 entries", code: "count.entries", params: { count: 3 } }, path: "." },
  },
};
const MISSING = {
  text: "'a.txt' does not exist. Check the path.",
  error: { code: "NOT_FOUND", message: "'a.txt' does not exist." },
  context: {
    message_code: "file.not_found",
    message_params: { path: "a.txt" },
    hint: "Check the path.",
    hint_code: "hint.check_path",
    hint_params: {},
  },
};

it("translates the text of a result by its code", async () => {
  expect(readableText(LISTED)).toBe("Listed 3 entries in '.'.");
  language.value = "zh";
  await loadMessages();
  expect(readableText(LISTED)).toBe("已列出“.”中的 3 项。");
});

it("leaves the words of a plugin as they are", () => {
  expect(resultText({ text: "Hello there." })).toEqual({ text: "Hello there.", code: undefined, params: undefined });
});

it("tells the message of a failure from what to do next", async () => {
  expect(failureAdvice(MISSING)).toMatchObject({ more: "", hint: { text: "Check the path." } });
  language.value = "zh";
  await loadMessages();
  expect(readableText(MISSING)).toBe("“a.txt”不存在。\n请检查路径。");
});

it("keeps what a plugin said beside its message", () => {
  const failure = { ...MISSING, text: "'a.txt' does not exist. It was there yesterday. Check the path." };
  expect(failureAdvice(failure).more).toBe("It was there yesterday.");
});
