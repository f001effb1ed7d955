import { expect, test } from "vitest";
import { mainArgument } from "./main-argument";

test.each([
  [{ content: "words", path: "notes.txt" }, "notes.txt"],
  [{ command: "SearchWeb", query: "maps" }, "maps"],
  [{ command: "ls -la" }, "ls -la"],
  [{ city: "Rome", days: 3 }, "Rome"],
  [{ text: "one\n two" }, "one two"],
  [{ days: 3 }, ""],
  [null, ""],
])("the main argument of %j is %j", (given, line) => expect(mainArgument(given)).toBe(line));

test("a long one is cut", () => expect(mainArgument({ path: "a".repeat(100) })).toBe(`${"a".repeat(79)}…`));
