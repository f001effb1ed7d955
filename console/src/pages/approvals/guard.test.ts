import { afterEach, expect, test, vi } from "vitest";
import { counts, hold } from "./guard";

afterEach(() => {
  vi.restoreAllMocks();
});

const at = (ms: number) => vi.spyOn(performance, "now").mockReturnValue(ms);

test("a press counts only when the card has been there for half a second", () => {
  at(10_000);
  expect(counts(10_000)).toBe(false);
  at(10_499);
  expect(counts(10_000)).toBe(false);
  at(10_500);
  expect(counts(10_000)).toBe(true);
});

test("a press does not count right after something has moved", () => {
  at(20_000);
  hold();
  at(20_499);
  expect(counts(0)).toBe(false);
  at(20_500);
  expect(counts(0)).toBe(true);
});
