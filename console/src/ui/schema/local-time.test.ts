import { expect, test } from "vitest";
import { fromLocalTime, toLocalTime } from "./local-time";

test("a moment is shown in the reader's zone and sent with its offset", () => {
  const sent = fromLocalTime("date-time", "2026-03-01T09:30");
  expect(sent).toMatch(/^2026-03-01T09:30:00[+-]\d{2}:\d{2}$/);
  expect(toLocalTime("date-time", sent)).toBe("2026-03-01T09:30:00");
  expect(new Date(toLocalTime("date-time", "2026-03-01T00:00:00Z")!).getTime()).toBe(Date.UTC(2026, 2, 1));
});

test("a day and a time of day stay as they are", () => {
  expect(fromLocalTime("date", "2026-03-01")).toBe("2026-03-01");
  expect(toLocalTime("date", "2026-03-01")).toBe("2026-03-01");
  expect(fromLocalTime("time", "09:30")).toBe("09:30:00");
});

test.each<["date" | "time" | "date-time", string]>([
  ["date", "tomorrow"],
  ["time", "noon"],
  ["date-time", "2026"],
])("a %s that reads %j is none", (kind, text) => expect(toLocalTime(kind, text)).toBeNull());
