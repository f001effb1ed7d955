import { expect, test } from "vitest";
import { toText } from "./text";

test.each([
  ["as it is", "as it is"],
  [null, ""],
  [undefined, ""],
  [0, "0"],
  [false, "false"],
  [["a", 1], '["a",1]'],
  [{ a: null }, '{"a":null}'],
  [() => 1, ""],
])("toText(%j) is %j", (value, text) => expect(toText(value)).toBe(text));
