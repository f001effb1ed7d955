import { expect, test } from "vitest";
import { filtersIn, formatQuery, parseMoment, parseQuery, tokensOf } from "./query";

const none = { code: "", tool: "", caller: "", state: "", since: "", before: "", q: "" };

test("keys become filters, and the rest is text", () => {
  expect(parseQuery('code:NOT_FOUND tool:Read since:2h "two words" plain').query).toEqual({
    ...none,
    code: "NOT_FOUND",
    tool: "Read",
    since: "2h",
    q: "two words plain",
  });
  expect(parseQuery('caller:"my laptop" state:error,Partial state:failed').query).toEqual({
    ...none,
    caller: "my laptop",
    state: "error,partial",
  });
});

test("keys may be Chinese, codes of any case, and the colon a wide one", () => {
  expect(parseQuery("错误码：not-found 工具:Read 起始:昨天").query).toEqual({
    ...none,
    code: "NOT_FOUND",
    tool: "Read",
    since: "昨天",
  });
});

test("what means nothing is told, and an unknown key is searched for as it stands", () => {
  expect(parseQuery("colour:red code:NOPE since:soon state:odd")).toEqual({
    query: { ...none, q: "colour:red" },
    hints: [
      { key: "colour", value: "red" },
      { key: "code", value: "NOPE" },
      { key: "since", value: "soon" },
      { key: "state", value: "odd" },
    ],
  });
  expect(parseQuery("http://a.example/x 12:30 code:")).toEqual({
    query: { ...none, q: "http://a.example/x 12:30" },
    hints: [],
  });
});

test("a query and its text say the same", () => {
  for (const text of [
    'code:NOT_FOUND,TIMEOUT tool:Read caller:"my laptop" state:error since:2h before:today a b',
    "",
    "x:y",
  ]) {
    const { query } = parseQuery(text);
    expect(formatQuery(query)).toBe(text);
    expect(parseQuery(formatQuery(query)).query).toEqual(query);
  }
  expect(formatQuery({ since: "hour" })).toBe("since:1h");
});

test("moments are spans, days and times of day, in local time", () => {
  const now = new Date(2026, 10, 17, 15, 0, 0);
  const at = (...parts: [number, number, number, number?, number?]) => new Date(...parts).getTime() / 1000;
  expect(parseMoment("2h", now)).toBe(at(2026, 10, 17, 13));
  expect(parseMoment("90min", now)).toBe(at(2026, 10, 17, 13, 30));
  expect(parseMoment("week", now)).toBe(now.getTime() / 1000 - 7 * 86400);
  expect(parseMoment("today", now)).toBe(at(2026, 10, 17));
  expect(parseMoment("昨天", now)).toBe(at(2026, 10, 16));
  expect(parseMoment("14:30", now)).toBe(at(2026, 10, 17, 14, 30));
  expect(parseMoment("2026-11-01", now)).toBe(at(2026, 10, 1));
  expect(parseMoment("2026-11-01T09:05", now)).toBe(at(2026, 10, 1, 9, 5));
  for (const odd of ["", "soon", "25:00", "2026-02-31", "2026-13-01", "h"]) expect(parseMoment(odd, now)).toBeNull();
});

test("a token knows where it stands", () => {
  expect(tokensOf('a code:"x y"')).toEqual([
    { key: "", value: "a", start: 0, end: 1 },
    { key: "code", value: "x y", start: 2, end: 12 },
  ]);
});

test("the filters of a text leave its other words", () => {
  expect(filtersIn("code:NOT_FOUND notes")).toEqual({ code: "NOT_FOUND", q: "notes" });
  expect(filtersIn("notes x:y")).toBeNull();
});
