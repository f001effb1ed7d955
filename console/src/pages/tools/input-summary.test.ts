import { expect, test } from "vitest";
import { sharedFields, summarizeInput } from "./input-summary";

test("an input is one line with its command first", () => {
  expect(summarizeInput({ path: "a\nb", command: "Run", n: 1 })).toBe("Run  path=a⏎b  n=1");
});

test("beside others of its kind, an input begins with what only it has", () => {
  const inputs = [
    { scene: "life", seed: 1 },
    { scene: "life", seed: 2 },
  ];
  const shared = sharedFields(inputs);
  expect(inputs.map((one) => summarizeInput(one, shared))).toEqual(["seed=1  scene=life", "seed=2  scene=life"]);
  expect(sharedFields([{ scene: "life" }])).toEqual(new Set());
});
