import { describe, expect, test } from "vitest";
import { readJsonProblem } from "./json-problem";

const TEXT = '{\n "a":\n1';

describe("readJsonProblem", () => {
  test.each([
    ["Expected ',' in JSON at position 9 (line 2 column 3)", 2, 3],
    ["JSON.parse: expected ':' at line 4 column 1 of the JSON data", 4, 1],
    ["Unexpected token in JSON at position 4", 2, 3],
    ["Unexpected end of JSON input", 3, 2],
    ["JSON Parse error: Unrecognized token", 0, 0],
  ])("reads %j", (why, line, column) => {
    expect(readJsonProblem(TEXT, new SyntaxError(why))).toEqual({ why, line, column });
  });
});
