import { describe, expect, test } from "vitest";
import { problemsOf } from "./check";
import { callSchema, isBatch, renameFields, selectedCommand, splitCommands, switchCommand } from "./command";
import type { Schema } from "./shape";

const VARIANTS: Schema = {
  type: "object",
  properties: { note: { type: "string" } },
  oneOf: [
    { description: "Adds one.", properties: { command: { const: "add" }, item: {} }, required: ["item"] },
    { title: "Take away", properties: { command: { enum: ["remove"] }, id: { type: "integer" } }, required: ["id"] },
  ],
};
const CONDITIONS: Schema = {
  type: "object",
  properties: { action: { enum: ["get", "put"] }, key: { type: "string" } },
  required: ["action", "key"],
  allOf: [
    {
      if: { properties: { action: { const: "put" } } },
      then: { properties: { value: { type: "string" } }, required: ["value"] },
    },
  ],
};

describe("splitCommands", () => {
  test("finds the property that tells the variants of a schema apart", () => {
    const [add, remove] = splitCommands(VARIANTS);
    expect(add).toMatchObject({ name: "add", selector: "command", description: "Adds one." });
    expect(Object.keys(add!.schema.properties!).sort()).toEqual(["command", "item", "note"]);
    expect(add!.schema.required).toEqual(["command", "item"]);
    expect(remove).toMatchObject({ name: "remove", title: "Take away" });
  });

  test("understands conditions on one property", () => {
    const [get, put] = splitCommands(CONDITIONS);
    expect(get!.schema.required).toEqual(["action", "key"]);
    expect(put!.schema.required).toEqual(["action", "key", "value"]);
    expect(Object.keys(put!.schema.properties!).sort()).toEqual(["action", "key", "value"]);
  });

  test.each<Schema>([
    {},
    { properties: { command: { enum: ["a", "b"] } } },
    { oneOf: [{ required: ["a"] }, { required: ["b"] }] },
    { oneOf: [{ properties: { kind: { const: "a" } } }, { properties: { kind: { const: "a" } } }] },
  ])("%j has nothing to choose", (schema) => expect(splitCommands(schema)).toEqual([]));
});

describe("a chosen command", () => {
  const commands = splitCommands(VARIANTS);

  test("is the only one whose fields are required", () => {
    expect([...problemsOf(callSchema(VARIANTS, commands, {}), {}).keys()]).toEqual(["command"]);
    const values = { command: "remove" };
    expect([...problemsOf(callSchema(VARIANTS, commands, values), values).keys()]).toEqual(["id"]);
  });

  test("keeps what it has in common with the one before", () => {
    const values = switchCommand(commands[1]!, { command: "add", item: "tea", note: "hot" });
    expect(values).toEqual({ command: "remove", note: "hot" });
    expect(selectedCommand(commands, values)?.name).toBe("remove");
  });

  test("is not asked for in a numbered batch, which the tool itself checks", () => {
    const values = { command1: "add", item1: "tea", command2: "remove", id2: 1 };
    expect(isBatch(commands, values)).toBe(true);
    expect(problemsOf(callSchema(VARIANTS, commands, values), values).size).toBe(0);
  });

  test("gets its fields by their other names too", () => {
    const named = renameFields(commands, { command: "remove", number: 7, more: 1 }, { id: "number" });
    expect(named).toEqual({ command: "remove", id: 7, more: 1 });
  });
});
