import { expect, test } from "vitest";
import { mainArgumentIn } from "./main-argument-in";

test("arguments that are cut still tell", () => {
  expect(mainArgumentIn('{"path":"a \\"b\\".txt","content":"x"}')).toBe('a "b".txt');
  expect(mainArgumentIn('{"content":"long","path":"a.txt","more":"and s')).toBe("a.txt");
  expect(mainArgumentIn('{"number":1')).toBe("");
});
