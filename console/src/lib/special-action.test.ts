import { afterEach, beforeEach, expect, it } from "vitest";
import { session } from "./api";
import { canvasIn, openedCanvas, perform } from "./special-action";

const CANVAS = { _specialAction: "create_canvas", payload: { filePath: "/project/canvas/a.md" } };

beforeEach(() => {
  session.value = { key: "me", scopes: ["chat", "tools"], csrf: "", cursor: null };
});
afterEach(() => {
  session.value = null;
  openedCanvas.value = "";
});

it("knows the file of a canvas, and no other action", () => {
  expect(canvasIn(CANVAS)).toBe("/project/canvas/a.md");
  for (const other of [
    null,
    {},
    { _specialAction: "show", payload: CANVAS.payload },
    { _specialAction: "create_canvas" },
    { _specialAction: "create_canvas", payload: { filePath: 5 } },
  ])
    expect(canvasIn(other)).toBe("");
});

it("offers no file to a key that cannot read files", () => {
  session.value = { key: "me", scopes: ["chat"], csrf: "", cursor: null };
  expect(canvasIn(CANVAS)).toBe("");
});

it("opens the file once, and does not replace what is open", () => {
  perform(CANVAS);
  perform({ ...CANVAS, payload: { filePath: "/project/canvas/b.md" } });
  expect(openedCanvas.value).toBe("/project/canvas/a.md");
});
