import { afterEach, expect, test } from "vitest";
import { callerName, keyName } from "./caller";
import { language } from "./language";

afterEach(() => {
  language.value = "en";
});

test("the owner's key has a word in the language of the page", () => {
  expect([callerName("key:owner"), keyName("owner")]).toEqual(["owner", "owner"]);
  language.value = "zh";
  expect([callerName("key:owner"), keyName("owner")]).toEqual(["管理员", "管理员"]);
});

test("other callers are shown as they are", () => {
  language.value = "zh";
  expect([callerName("mcp:claude"), keyName("laptop")]).toEqual(["mcp:claude", "laptop"]);
});
