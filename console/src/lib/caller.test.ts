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

test("programs are named in the language of the page, and other callers are shown as they are", () => {
  const callers = ["cli", "cli:/home/me/site", "mcp:claude", "yard:0123", "robot"];
  expect(callers.map(callerName)).toEqual(["command line", "site (command line)", "claude (MCP)", "Python", "robot"]);
  language.value = "zh";
  expect([callerName("cli"), callerName("mcp:claude"), keyName("laptop")]).toEqual([
    "命令行",
    "claude（MCP）",
    "laptop",
  ]);
});
