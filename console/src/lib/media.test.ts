import { describe, expect, test } from "vitest";
import { mediaKind, mediaOf, mimeOf } from "./media";

const PNG = "data:image/png;base64,iVBORw0KGgo=";

describe("mimeOf", () => {
  test.each([
    [PNG, "image/png"],
    ["data:audio/mpeg;base64,AAAA", "audio/mpeg"],
    ["data:video/mp4;base64,AAAA", "video/mp4"],
  ])("knows what %s holds", (uri, mime) => expect(mimeOf(uri)).toBe(mime));

  test.each([
    "https://example.com/a.png",
    "data:image/svg+xml;base64,AAAA",
    "data:text/html;base64,AAAA",
    "data:image/png,raw",
    `${PNG}" onerror="x`,
    "",
  ])("lets %j not be shown", (uri) => expect(mimeOf(uri)).toBeNull());
});

test("kindOf tells pictures, sounds and films apart", () => {
  expect(["image/png", "audio/ogg", "video/webm"].map(mediaKind)).toEqual(["image", "audio", "video"]);
});

describe("mediaOf", () => {
  test("finds media in every form that a part of content has", () => {
    const parts = [
      { type: "image_url", image_url: { url: PNG } },
      { type: "video_url", video_url: { url: "data:video/mp4;base64,AAAA" } },
      { type: "input_audio", input_audio: { data: "AAAA", format: "mp3" } },
      { type: "input_audio", input_audio: { data: "AAAA", format: "wav" } },
    ];
    expect(mediaOf(parts)).toEqual([
      PNG,
      "data:video/mp4;base64,AAAA",
      "data:audio/mpeg;base64,AAAA",
      "data:audio/wav;base64,AAAA",
    ]);
  });

  test("leaves out addresses, text and what is no part at all", () => {
    const parts = [
      { image_url: { url: "https://example.com/a.png" } },
      { image_url: { url: { deep: PNG } } },
      { type: "text", text: "a" },
      null,
      "text",
      3,
    ];
    expect(mediaOf(parts)).toEqual([]);
  });
});
