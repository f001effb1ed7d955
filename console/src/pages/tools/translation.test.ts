import { afterEach, expect, test } from "vitest";
import { language } from "../../lib/language";
import { helpOf, titleOf } from "./translation";

const tool = {
  name: "FileOperator",
  display_name: "文件操作器",
  kind: "synchronous",
  translations: {
    en: { display_name: "", description: "", parameters: { path: "Where" } },
    zh: { display_name: "文件", description: "", parameters: { path: "位置" } },
  },
};

afterEach(() => {
  language.value = "en";
});

test("a tool has its name in the language of the reader", () => {
  language.value = "zh";
  expect([titleOf(tool), titleOf({ ...tool, translations: {} })]).toEqual(["文件", "文件操作器"]);
});

test("a Chinese name is not shown to a reader of English", () => {
  expect([titleOf(tool), titleOf({ ...tool, display_name: "File operator" })]).toEqual([
    "FileOperator",
    "File operator",
  ]);
});

test("the help of parameters is in the language of the reader, and there may be none", () => {
  expect(helpOf(tool)).toEqual({ path: "Where" });
  language.value = "zh";
  expect(helpOf(tool)).toEqual({ path: "位置" });
  expect(helpOf({ ...tool, translations: {} })).toEqual({});
});
