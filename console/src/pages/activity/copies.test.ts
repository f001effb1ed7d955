import { expect, test } from "vitest";
import type { CallDetail } from "toolyard-client";
import { toCurl, toFixture } from "./copies";

const call = {
  id: "1",
  tool: "Echo",
  state: "success",
  caller: "owner",
  origin: "console",
  started: 1,
  ended: 2,
  arguments: { command: "say", text: "it's" },
  envelope: {
    status: "success",
    data: { a: 1 },
    text: "it's",
    stats: { ms: 3 },
    context: { cwd: "/", params_input: {} },
  },
} as Partial<CallDetail> as CallDetail;

test("the command for curl quotes the input, and carries no key", () => {
  const command = toCurl(call);
  expect(command).toContain(`-d '{"command":"say","text":"it'\\''s"}'`);
  expect(command).toContain('"Authorization: Bearer $TOOLYARD_KEY"');
});

test("a fixture has the input and what came of it, and nothing that changes from run to run", () => {
  expect(JSON.parse(toFixture(call))).toEqual({
    name: "Echo:say",
    tool: "Echo",
    arguments: call.arguments,
    expect: { status: "success", text: "it's", data: { a: 1 } },
  });
  expect(JSON.parse(toFixture({ ...call, arguments: null, envelope: null }))).toEqual({
    name: "Echo",
    tool: "Echo",
    arguments: {},
    expect: null,
  });
});
