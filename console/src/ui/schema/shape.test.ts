import { describe, expect, test } from "vitest";
import { initialValue, fieldsOf, resolveSchema, secretNames, shapeOf, withoutSecrets, type Schema } from "./shape";

const kindOf = (schema: Schema, name = "") => shapeOf(schema, schema, name).kind;

describe("plain", () => {
  test("follows a reference, and what stands beside it counts more", () => {
    const root: Schema & { $defs: object } = { $defs: { "a/b": { type: "string", description: "there" } } };
    expect(resolveSchema({ $ref: "#/$defs/a~1b", description: "here" }, root)).toEqual({
      type: "string",
      description: "here",
    });
  });

  test("puts the parts of allOf together", () => {
    const schema: Schema = {
      type: "object",
      required: ["a"],
      allOf: [{ properties: { a: { type: "string" } } }, { properties: { b: { type: "integer" } }, required: ["b"] }],
    };
    expect(resolveSchema(schema, schema)).toEqual({
      type: "object",
      properties: { a: { type: "string" }, b: { type: "integer" } },
      required: ["a", "b"],
    });
  });

  test.each(["#/$defs/missing", "https://example.com/schema", "#/$defs/100%", "a"])(
    "takes the reference %s, which leads nowhere, as any value",
    ($ref) => {
      expect(resolveSchema({ $ref }, {})).toEqual({});
    },
  );

  test("ends at a reference that leads in a circle", () => {
    const root: Schema & { $defs: object } = { $defs: { a: { $ref: "#/$defs/b" }, b: { $ref: "#/$defs/a" } } };
    expect(resolveSchema({ $ref: "#/$defs/a" }, root)).toEqual({});
  });

  test.each([true, false, undefined])("takes %s as any value", (schema) =>
    expect(resolveSchema(schema, {})).toEqual({}),
  );
});

describe("shapeOf", () => {
  test.each<[Schema, string, string]>([
    [{ type: "string" }, "name", "text"],
    [{ type: "string" }, "content", "long"],
    [{ type: "string" }, "content2", "long"],
    [{ type: "string", maxLength: 80 }, "content", "text"],
    [{ type: "string", maxLength: 4000 }, "name", "long"],
    [{ type: "string", format: "markdown" }, "name", "long"],
    [{ type: "string" }, "path", "path"],
    [{ type: "string" }, "file_path", "path"],
    [{ type: "string" }, "outputDir", "path"],
    [{ type: "string" }, "profile", "text"],
    [{ type: "integer" }, "n", "integer"],
    [{ type: "number" }, "n", "number"],
    [{ type: "boolean" }, "on", "boolean"],
    [{ type: ["string", "integer"] }, "n", "text-or-number"],
    [{ type: ["string", "array"] }, "n", "choice"],
    [{ enum: ["a", "b"] }, "n", "enum"],
    [{ const: "a" }, "n", "enum"],
    [{ properties: { a: {} } }, "n", "object"],
    [{ type: "object" }, "n", "json"],
    [{ items: { type: "string" } }, "n", "array"],
    [{}, "n", "json"],
    [{ type: "string", format: "password" }, "n", "secret"],
    [{ type: "string" }, "api_key", "secret"],
    [{ type: "string" }, "page_token", "text"],
    [{ type: "string", format: "date-time" }, "n", "date-time"],
    [{ type: "string", contentEncoding: "base64" }, "n", "file"],
    [{ type: "string", format: "directory" }, "n", "path"],
    [{ type: "array", items: { enum: ["a"] } }, "n", "several"],
    [{ type: "object", additionalProperties: { type: "string" } }, "n", "map"],
  ])("%j called %s is a field for %s", (schema, name, kind) => expect(kindOf(schema, name)).toBe(kind));

  test.each<Schema>([
    { type: ["string", "null"] },
    { type: "string", nullable: true },
    { anyOf: [{ type: "string" }, { type: "null" }] },
    { oneOf: [{ type: "string" }, { const: null }] },
  ])("%j is text that may be null", (schema) => {
    expect(shapeOf(schema, schema)).toMatchObject({ kind: "text", nullable: true });
  });

  test("values that each stand for themselves are one choice", () => {
    const schema: Schema = { oneOf: [{ const: "a" }, { const: 2 }] };
    expect(shapeOf(schema, schema)).toMatchObject({ kind: "enum", schema: { enum: ["a", 2] }, nullable: false });
  });

  test("null is no value of an enum: it is what the switch beside it says", () => {
    const schema: Schema = { enum: ["a", null] };
    expect(shapeOf(schema, schema)).toMatchObject({ kind: "enum", nullable: true, schema: { enum: ["a"] } });
  });

  test("known values and any other text are a choice of the known ones", () => {
    const schema: Schema = { anyOf: [{ enum: ["a", "b"] }, { type: "string" }] };
    expect(shapeOf(schema, schema)).toMatchObject({ kind: "enum", schema: { enum: ["a", "b"] } });
  });

  test("values of several kinds are a choice between the kinds", () => {
    const schema: Schema = {
      anyOf: [{ type: "string" }, { type: "array", items: { type: "string" } }, { type: "null" }],
    };
    const shape = shapeOf(schema, schema);
    expect(shape).toMatchObject({ kind: "choice", nullable: true });
    expect(shape.variants.map((one) => one.type)).toEqual(["string", "array"]);
  });
});

test("fieldsOf brings what is required first, each in the order of the schema", () => {
  const schema: Schema = { properties: { a: {}, b: {}, c: {}, d: {} }, required: ["d", "b", "missing"] };
  expect(fieldsOf(schema, schema).map((field) => [field.name, field.required])).toEqual([
    ["b", true],
    ["d", true],
    ["a", false],
    ["c", false],
  ]);
});

test.each<[Schema, unknown]>([
  [{ type: "string" }, ""],
  [{ type: "string", default: "x" }, "x"],
  [{ type: "integer", minimum: 3 }, 3],
  [{ type: "number" }, 0],
  [{ type: "boolean" }, false],
  [{ enum: ["b", "a"] }, "b"],
  [{ type: "array" }, []],
  [{ type: "object" }, {}],
  [{ properties: { kind: { const: "a" }, x: {} }, required: ["kind", "x"] }, { kind: "a" }],
])("a new item of %j begins as %j", (schema, value) => expect(initialValue(schema, schema)).toEqual(value));

test("secrets are found at any depth and left out", () => {
  const schema: Schema = {
    properties: {
      user: { type: "string" },
      login: { properties: { password: { type: "string" } } },
      hosts: { type: "array", items: { properties: { pin: { type: "string", format: "password" } } } },
    },
  };
  const secrets = secretNames(schema);
  expect([...secrets]).toEqual(["password", "pin"]);
  const values = { user: "me", login: { password: "x" }, hosts: [{ pin: "1", name: "a" }] };
  expect(withoutSecrets(values, secrets)).toEqual({ user: "me", login: {}, hosts: [{ name: "a" }] });
});
