import { expect, test } from "vitest";
import { isForChat } from "./model-kind";

test("what cannot chat is known by its name", () => {
  const others = [
    "text-embedding-3-small",
    "nomic-embed-text:latest",
    "BAAI/bge-m3",
    "jina-reranker-v2",
    "whisper-1",
    "gpt-4o-transcribe",
    "tts-1-hd",
    "gpt-4o-mini-tts",
    "dall-e-3",
    "gpt-image-1",
    "omni-moderation-latest",
    "imagen-4.0-generate",
    "black-forest-labs/flux-1",
  ];
  expect(others.filter((id) => isForChat({ id }))).toEqual([]);
  const chats = ["gpt-4o", "gpt-4o-audio-preview", "qwen3-vl", "gemini-2.5-flash-image", "star-1", "llama3.2:3b", "o3"];
  expect(chats.filter((id) => !isForChat({ id }))).toEqual([]);
});

test("what a provider says of a model counts more than its name", () => {
  expect(isForChat({ id: "plain", type: "embeddings" })).toBe(false);
  expect(isForChat({ id: "plain", architecture: { output_modalities: ["image"] } })).toBe(false);
  expect(isForChat({ id: "embedded-chat", architecture: { output_modalities: ["text"] } })).toBe(true);
  expect(isForChat({ id: "plain", capabilities: { completion_chat: false } })).toBe(false);
});
