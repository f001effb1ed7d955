import { describe, expect, it } from "vitest";
import { addReport, handleCallEvent, progressOf } from "./progress";

const event = (type: string, data: Record<string, unknown>) => ({ seq: 1, type, at: 0, data });

describe("progress of running calls", () => {
  it("adds the lines of each report and keeps the last fraction", () => {
    const first = addReport({ done: null, lines: [] }, { done: 0.25, text: "one\ntwo" });
    const second = addReport(first, { done: null, text: "three" });
    expect(second).toEqual({ done: 0.25, lines: ["one", "two", "three"] });
  });

  it("keeps the last 200 lines, and fractions between 0 and 1", () => {
    const text = Array.from({ length: 300 }, (_, at) => `line ${at}`).join("\n");
    const report = addReport({ done: null, lines: [] }, { done: 7, text });
    expect(report.done).toBe(1);
    expect(report.lines).toHaveLength(200);
    expect(report.lines.at(-1)).toBe("line 299");
  });

  it("is shown while a call runs, and gone when it has ended", () => {
    const shown = progressOf("call_1");
    handleCallEvent(event("call.progress", { id: "call_1", done: 0.5, text: "half" }));
    expect(shown.value).toEqual({ done: 0.5, lines: ["half"] });
    handleCallEvent(event("call.progress", { id: "call_2", done: 0.1, text: "other" }));
    expect(shown.value.lines).toEqual(["half"]);
    handleCallEvent(event("call.finished", { id: "call_1" }));
    expect(shown.value.lines).toEqual([]);
    expect(progressOf("call_1").value.lines).toEqual([]);
  });
});
