import { expect, test } from "vitest";
import { groupOf } from "./day-groups";

const NOW = new Date(2026, 10, 18, 0, 30).getTime();
const at = (...when: [number, number, number, number, number]) => new Date(...when).getTime() / 1000;

test("a row is grouped by the day of its last change, and pinned ones stand apart", () => {
  const group = (updated: number, pinned = false) => groupOf({ updated, pinned }, NOW);
  expect(group(at(2026, 10, 18, 0, 5))).toBe("today");
  expect(group(at(2026, 10, 17, 23, 59))).toBe("yesterday");
  expect(group(at(2026, 10, 17, 0, 0))).toBe("yesterday");
  expect(group(at(2026, 10, 16, 23, 59))).toBe("week");
  expect(group(at(2026, 10, 1, 12, 0))).toBe("earlier");
  expect(group(at(2026, 10, 18, 0, 5), true)).toBe("pinned");
});
