import { afterEach, describe, expect, test } from "vitest";
import { language } from "../../lib/language";
import { isValid, problemsOf } from "./check";
import type { Json, Schema } from "./shape";

const problemOf = (schema: Schema, value: Json) =>
  problemsOf({ properties: { x: schema } }, { x: value }).get("x") ?? "";

afterEach(() => {
  language.value = "en";
});

describe("problemsOf", () => {
  test("asks for one of several fields", () => {
    const schema: Schema = { properties: { a: {}, b: {} }, anyOf: [{ required: ["a"] }, { required: ["b"] }] };
    expect([...problemsOf(schema, {})]).toEqual([["a", "Fill in one of these: a, b"]]);
    expect(problemsOf(schema, { b: 1 }).size).toBe(0);
  });

  test("asks for what is required and has no default", () => {
    const schema: Schema = { properties: { a: {}, b: { default: 1 }, c: {} }, required: ["a", "b"] };
    expect([...problemsOf(schema, {}).keys()]).toEqual(["a"]);
    expect(problemsOf(schema, { a: null }).size).toBe(0);
    expect(problemsOf(schema, { a1: 1, a2: 2 }).size).toBe(0); // a numbered batch
  });

  test("names a field inside of lists and objects by its path", () => {
    const schema: Schema = {
      properties: {
        edits: {
          type: "array",
          items: { properties: { path: { type: "string" }, line: { type: "integer" } }, required: ["path"] },
        },
      },
    };
    const problems = problemsOf(schema, { edits: [{ path: "a" }, { line: 1.5 }] });
    expect([...problems.keys()]).toEqual(["edits/1/path", "edits/1/line"]);
  });

  test.each<[Schema, Json]>([
    [{ type: "string" }, 3],
    [{ type: "string", minLength: 2 }, "a"],
    [{ type: "string", maxLength: 2 }, "abc"],
    [{ type: "string", pattern: "^a+$" }, "ab"],
    [{ type: "integer" }, 1.5],
    [{ type: "integer" }, "1"],
    [{ type: "number" }, "much"],
    [{ type: "number", minimum: 1 }, 0],
    [{ type: "number", maximum: 1 }, 2],
    [{ type: "number", exclusiveMinimum: 1 }, 1],
    [{ type: "number", exclusiveMaximum: 1 }, 1],
    [{ type: "number", multipleOf: 0.1 }, 0.25],
    [{ type: "boolean" }, "true"],
    [{ enum: ["a", 1] }, "1"],
    [{ type: "array" }, {}],
    [{ type: "array", minItems: 1 }, []],
    [{ type: "array", maxItems: 1 }, [1, 2]],
    [{ type: "object", properties: { a: {} } }, []],
    [{ type: "object" }, "text"],
    [{ type: "array", uniqueItems: true }, [1, 1]],
    [{ type: "string", format: "date" }, "tomorrow"],
    [{ type: "string", format: "date-time" }, "2026-01-01"],
    [{ type: "string", format: "email" }, "me"],
    [{ type: "string", format: "uri" }, "example.com"],
    [{ anyOf: [{ type: "integer" }, { type: "array" }] }, "a"],
  ])("%j does not take %j", (schema, value) => expect(problemOf(schema, value)).not.toBe(""));

  test.each<[Schema, Json]>([
    [{ type: "string", maxLength: 1 }, "😀"],
    [{ type: "string", pattern: "^a+$" }, "aa"],
    [{ type: "string", pattern: "(?P<name>a)" }, "whatever the server says of a pattern of its own dialect"],
    [{ type: ["string", "null"] }, null],
    [{ type: "number", multipleOf: 0.1 }, 0.3],
    [{ type: ["string", "integer"], minimum: 1 }, "all"],
    [{ enum: [{ a: 1 }] }, { a: 1 }],
    [{ anyOf: [{ type: "integer" }, { type: "array" }] }, []],
    [{}, { any: ["value"] }],
  ])("%j takes %j", (schema, value) => expect(problemOf(schema, value)).toBe(""));

  test("tells what a variant lacks at the variant's own fields", () => {
    const schema: Schema = {
      properties: {
        to: {
          oneOf: [
            { properties: { kind: { const: "mail" }, address: {} }, required: ["kind", "address"] },
            { properties: { kind: { const: "hook" }, url: { type: "string" } }, required: ["kind", "url"] },
          ],
        },
      },
      required: ["to"],
    };
    expect([...problemsOf(schema, { to: { kind: "hook" } }).keys()]).toEqual(["to/url"]);
    expect([...problemsOf(schema, {}).keys()]).toEqual(["to/address"]);
  });

  test("says what is wrong in the language of the page", () => {
    expect(problemOf({ type: "number", minimum: 5 }, 1)).toBe("At least 5.");
    language.value = "zh";
    expect(problemOf({ type: "number", minimum: 5 }, 1)).toBe("不小于 5。");
  });
});

test("fits tells whether a value is of a kind, with all that is in it", () => {
  const schema: Schema = { properties: { a: { type: "integer" } }, required: ["a"] };
  expect(isValid(schema, { a: 1 }, schema)).toBe(true);
  expect(isValid(schema, { a: "1" }, schema)).toBe(false);
  expect(isValid(schema, {}, schema)).toBe(false);
});
