import { expect, test } from "vitest";
import { decodePart } from "./uri";

test.each([
  ["a%20b", "a b"],
  ["%E4%B8%AD", "中"],
  ["100%", "100%"],
  ["%E4%B8", "%E4%B8"],
])("decodePart(%j) is %j", (part, text) => expect(decodePart(part)).toBe(text));
