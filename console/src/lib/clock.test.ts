import { afterEach, describe, expect, test } from "vitest";
import { formatAbsolute, formatBytes, formatDuration, formatMoment, now, formatRelative } from "./clock";
import { language } from "./language";

afterEach(() => {
  language.value = "en";
});

describe("duration", () => {
  test.each([
    [0, "0 s"],
    [-3, "0 s"],
    [0.0004, "<0.001 s"],
    [0.004, "0.004 s"],
    [0.42, "0.42 s"],
    [3.44, "3.4 s"],
    [42.9, "42 s"],
    [59.99, "59 s"],
    [60, "1 min"],
    [125, "2 min 5 s"],
    [3600, "1 h"],
    [3659, "1 h"],
    [11520, "3 h 12 min"],
    [187200, "2 d 4 h"],
    [40 * 86400 + 3600, "40 d"],
    [365 * 86400, "1 year"],
    [400 * 86400, "1 year 35 d"],
    [730 * 86400, "2 years"],
  ])("%d seconds are %s", (seconds, text) => expect(formatDuration(seconds)).toBe(text));

  test("speaks Chinese", () => {
    language.value = "zh";
    expect(formatDuration(125)).toBe("2 分钟 5 秒");
  });
});

describe("relative", () => {
  const at = (away: number) => formatRelative(now.value / 1000 + away);

  test.each([
    [-4, "just now"],
    [4, "just now"],
    [-59, "59 s ago"],
    [-61, "1 min ago"],
    [-7200, "2 h ago"],
    [-86400, "1 d ago"],
    [90, "in 1 min"],
  ])("%d seconds away is %s", (away, text) => expect(at(away)).toBe(text));

  test("speaks Chinese", () => {
    language.value = "zh";
    expect(at(-3600)).toBe("1 小时前");
    expect(at(3600)).toBe("1 小时后");
  });
});

test("absolute says the offset of the zone, with its summer time", () => {
  expect(formatAbsolute(Date.UTC(2026, 6, 1) / 1000, "Europe/Berlin")).toMatch(/2026.*02:00:00 GMT\+02:00$/);
  expect(formatAbsolute(Date.UTC(2026, 0, 1) / 1000, "Europe/Berlin")).toMatch(/2026.*01:00:00 GMT\+01:00$/);
});

test.each([
  [0, "0 B"],
  [1023, "1,023 B"],
  [1024, "1.0 KiB"],
  [1536, "1.5 KiB"],
  [5 * 1024 ** 2, "5.0 MiB"],
  [3 * 1024 ** 4, "3,072.0 GiB"],
])("%d bytes are %s", (count, text) => expect(formatBytes(count)).toBe(text));

test("a moment has its day unless it is today", () => {
  const today = new Date(now.value);
  const at = (year: number, month: number, day: number) => new Date(year, month, day, 14, 30).getTime() / 1000;
  const year = today.getFullYear();
  expect(formatMoment(at(year, today.getMonth(), today.getDate()))).toBe("14:30:00");
  expect(formatMoment(at(year, today.getMonth() === 4 ? 5 : 4, 7))).toMatch(/^(May|Jun) 7, 14:30$/);
  expect(formatMoment(at(year - 1, 4, 7))).toBe(`May 7, ${year - 1}`);
  language.value = "zh";
  expect(formatMoment(at(year - 1, 4, 7))).toBe(`${year - 1}年5月7日`);
});
