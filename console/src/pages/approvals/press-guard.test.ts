import { afterEach, expect, test, vi } from "vitest";
import { isDeliberate, holdPresses } from "./press-guard";

afterEach(() => {
  vi.restoreAllMocks();
});

const at = (ms: number) => vi.spyOn(performance, "now").mockReturnValue(ms);

test("a press counts only when the card has been there for half a second", () => {
  at(10_000);
  expect(isDeliberate(10_000)).toBe(false);
  at(10_499);
  expect(isDeliberate(10_000)).toBe(false);
  at(10_500);
  expect(isDeliberate(10_000)).toBe(true);
});

test("a press does not count right after something has moved", () => {
  at(20_000);
  holdPresses();
  at(20_499);
  expect(isDeliberate(0)).toBe(false);
  at(20_500);
  expect(isDeliberate(0)).toBe(true);
});
