import { expect, test } from "vitest";
import { Fit, fitOf, rankOf } from "./rank";

const fit = (name: string, search: string) => fitOf(rankOf([name], search));

test("exact names rank first, then beginnings, word beginnings, parts, and letters in order", () => {
  const names = ["Bread", "Repeated", "Read", "Reader", "FileRead", "Write"];
  const ranked = names
    .map((name) => ({ name, rank: rankOf([name], "read") }))
    .filter((one) => one.rank > 0)
    .sort((a, b) => b.rank - a.rank);
  expect(ranked.map((one) => one.name)).toEqual(["Read", "Reader", "FileRead", "Bread", "Repeated"]);
});

test("names fit by their words, their initials and their other languages", () => {
  expect(fit("SciCalculator", "calc")).toBe(Fit.Words);
  expect(fit("SciCalculator", "sc")).toBe(Fit.Beginning);
  expect(fit("ProjectAnalyst", "pa")).toBe(Fit.Words);
  expect(fit("upstream_key", "key")).toBe(Fit.Words);
  expect(fit("New schedule", "n sch")).toBe(Fit.Words);
  expect(fit("SciCalculator", "scic")).toBe(Fit.Beginning);
  expect(fit("定时任务", "任务")).toBe(Fit.Part);
  expect(fitOf(rankOf(["Schedules", "定时任务"], "定时"))).toBe(Fit.Beginning);
  expect(fit("Settings", "sg")).toBe(Fit.Letters);
});

test("what does not fit has no rank", () => {
  for (const [name, search] of [
    ["Read", ""],
    ["", "a"],
    ["Read", "x"],
    ["Read", "dear"],
    ["Bread", "rd"],
  ] as const)
    expect(rankOf([name], search)).toBe(0);
});

test("of names that fit alike the shorter one ranks higher", () => {
  expect(rankOf(["Read"], "re")).toBeGreaterThan(rankOf(["ReadMany"], "re"));
});
