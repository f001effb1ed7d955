import { expect, test } from "vitest";
import { toCase, toCommand, toCurl, toPython } from "./copy-as";
import type { Envelope } from "toolyard-client";

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

test("the command of Toolyard quotes what a shell would not leave alone, and names home and project", () => {
  expect(toCommand("LS", {}, null)).toBe("toolyard call LS");
  expect(toCommand("Web.Fetch-2", INPUT, null)).toBe(`toolyard call Web.Fetch-2 --args ${QUOTED}`);
  expect(toCommand("it's", {}, null)).toBe(String.raw`toolyard call 'it'\''s'`);
  expect(toCommand("LS", {}, { home: "/home/me/it's", project: "/a b" })).toBe(
    String.raw`toolyard call LS --home '/home/me/it'\''s' --project '/a b'`,
  );
});

test("the call in Python has values as Python writes them", () => {
  const input = { on: true, off: null, list: [1, false], text: 'a "b"\n你好' };
  expect(toPython("Do", input, { home: "/h", project: "/p" })).toBe(
    [
      "import toolyard",
      "",
      'with toolyard.open(project="/p", home="/h") as yard:',
      String.raw`    envelope = yard.call("Do", {"on": True, "off": None, "list": [1, False], "text": "a \"b\"\n你好"})`,
      "    print(envelope.text)",
      "",
    ].join("\n"),
  );
  const long = toPython("Do", { text: "x".repeat(90), deep: { list: ["y"] } }, null);
  expect(long).toContain(
    `yard.call("Do", {\n        "text": "${"x".repeat(90)}",\n        "deep": {"list": ["y"]},\n    })`,
  );
});

test("a test expects the status and the first line of the answer", () => {
  const envelope: Envelope = {
    status: "success",
    data: {},
    text: "hello\nmore",
    stats: {},
    context: { cwd: "/", params_input: { text: "hello" } },
  };
  expect(JSON.parse(toCase(envelope))).toEqual({
    name: "hello",
    args: { text: "hello" },
    expect: { status: "success", text_contains: "hello" },
  });
  expect(JSON.parse(toCase({ ...envelope, text: "", context: { cwd: "/", params_input: {} } }))).toEqual({
    name: "",
    args: {},
    expect: { status: "success" },
  });
});
