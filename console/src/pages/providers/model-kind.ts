/** Models that cannot chat: embeddings, rerankers, speech, images and moderation, by what their provider says of them or
 * else by their names. */
const NOT_FOR_CHAT = new RegExp(
  "embed|rerank|moderation|whisper|transcri|dall-e|stable-diffusion|(^|[/_-])(tts|asr|bge|" +
    "gte|e5|sora|veo|imagen|flux)([._-]|\\d|$)|gpt-image|speech-to|text-to-",
  "i",
);
const OTHER_TYPES = new Set([
  "embedding",
  "embeddings",
  "rerank",
  "image",
  "audio",
  "transcribe",
  "moderation",
  "video",
]);

export function isForChat(model: { id: string; [field: string]: unknown }): boolean {
  if (typeof model["type"] === "string" && OTHER_TYPES.has(model["type"].toLowerCase())) return false;
  const output = read(model["architecture"], "output_modalities");
  if (Array.isArray(output)) return output.includes("text");
  if (read(model["capabilities"], "completion_chat") === false) return false;
  return !NOT_FOR_CHAT.test(model.id);
}

function read(value: unknown, field: string): unknown {
  return typeof value === "object" && value !== null ? (value as Record<string, unknown>)[field] : undefined;
}
