import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { areHeld, holdPresses, isDeliberate } from "./press-guard";

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

test("a press counts only half a second after something has appeared or moved", () => {
  holdPresses();
  expect([isDeliberate(), areHeld.value]).toEqual([false, true]);
  vi.advanceTimersByTime(499);
  expect([isDeliberate(), areHeld.value]).toEqual([false, true]);
  vi.advanceTimersByTime(1);
  expect([isDeliberate(), areHeld.value]).toEqual([true, false]);
});

test("what moves once more holds presses for longer", () => {
  holdPresses();
  vi.advanceTimersByTime(400);
  holdPresses();
  vi.advanceTimersByTime(400);
  expect([isDeliberate(), areHeld.value]).toEqual([false, true]);
  vi.advanceTimersByTime(100);
  expect([isDeliberate(), areHeld.value]).toEqual([true, false]);
});
