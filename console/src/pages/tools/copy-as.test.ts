import { expect, test } from "vitest";
import { toCase, toCommand, toCurl } from "./copy-as";
import type { Envelope } from "./types";

const INPUT = { text: `it's "two" lines\n$HOME \`id\` \\ 你好` };
/** The same in single quotes: nothing in them means anything to a shell, and a quote stands between them. */
const QUOTED = String.raw`'{"text":"it'\''s \"two\" lines\n$HOME ${"`id`"} \\ 你好"}'`;

test("the command for curl quotes the input for a shell, and carries no key", () => {
  expect(toCurl("画图", INPUT)).toBe(
    [
      "curl -X POST 'http://yard.test/v1/tools/%E7%94%BB%E5%9B%BE' \\",
      '  -H "Authorization: Bearer $TOOLYARD_KEY" \\',
      "  -H 'Content-Type: application/json' \\",
      `  -d ${QUOTED}`,
    ].join("\n"),
  );
});

test("the command of Toolyard quotes what a shell would not leave alone", () => {
  expect(toCommand("LS", {})).toBe("toolyard call LS");
  expect(toCommand("Web.Fetch-2", INPUT)).toBe(`toolyard call Web.Fetch-2 --args ${QUOTED}`);
  expect(toCommand("it's", {})).toBe(String.raw`toolyard call 'it'\''s'`);
});

test("a test expects the status and the first line of the answer", () => {
  const envelope: Envelope = {
    status: "success",
    data: {},
    text: "hello\nmore",
    stats: {},
    context: { params_input: { text: "hello" } },
  };
  expect(JSON.parse(toCase(envelope))).toEqual({
    name: "hello",
    args: { text: "hello" },
    expect: { status: "success", text_contains: "hello" },
  });
  expect(JSON.parse(toCase({ ...envelope, text: "", context: {} }))).toEqual({
    name: "",
    args: {},
    expect: { status: "success" },
  });
});
