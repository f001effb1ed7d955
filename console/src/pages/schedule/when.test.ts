import { afterEach, expect, test, vi } from "vitest";
import { language } from "../../lib/language";
import { dayOf, daysFrom, quickTimes, toSeconds, formatIso, timeOf, weekday } from "./when";

afterEach(() => {
  language.value = "en";
  vi.useRealTimers();
});

test("a moment is shown with the time and the offset of its text", () => {
  vi.useFakeTimers({ now: Date.UTC(2026, 5, 1) });
  expect(formatIso("2026-11-21T14:00:00+08:00")).toMatch(/^Sat, Nov 21, 14:00 \+08:00$/);
  expect(formatIso("2026-11-21T14:00:30Z")).toMatch(/^Sat, Nov 21, 14:00:30 \+00:00$/);
  expect(formatIso("2027-01-02T09:05-03:30")).toMatch(/2027.*09:05 -03:30$/);
});

test("what is no moment is shown as it is", () => expect(formatIso("tomorrow")).toBe("tomorrow"));

test("seconds counts from 1970, whatever the offset", () => {
  expect(toSeconds("1970-01-01T08:00:10+08:00")).toBe(10);
});

test("the day and the time of a moment are those of the zone", () => {
  const at = Date.UTC(2026, 10, 21, 20, 30) / 1000;
  expect([dayOf(at, "Asia/Shanghai"), timeOf(at, "Asia/Shanghai")]).toEqual(["2026-11-22", "04:30"]);
  expect([dayOf(at, "America/New_York"), timeOf(at, "America/New_York")]).toEqual(["2026-11-21", "15:30"]);
});

test("days follow each other over the end of a month and the change of the clocks", () => {
  expect(daysFrom("2026-10-24", 3)).toEqual(["2026-10-24", "2026-10-25", "2026-10-26"]);
  expect(daysFrom("2028-02-28", 3)).toEqual(["2028-02-28", "2028-02-29", "2028-03-01"]);
});

test("weekdays and quick times are in the language of the page", () => {
  expect(weekday("2026-11-21")).toBe("Sat");
  expect(quickTimes()).toContain("in 1 hour");
  language.value = "zh";
  expect(weekday("2026-11-21")).toBe("周六");
  expect(quickTimes()).toContain("1 小时后");
});
