// The AI SDK with its provider for servers that speak as OpenAI's does.
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { generateText, streamText } from "ai";
import { runDriver } from "./driver.mjs";

await runDriver(async (url, key, text, isStreamed) => {
  const model = createOpenAICompatible({ name: "toolyard", baseURL: url, apiKey: key })("scripted");
  if (!isStreamed) return (await generateText({ model, prompt: text })).text;
  let said = "";
  const answer = streamText({ model, prompt: text, onError: () => {} }); // an error is a part of the stream
  for await (const part of answer.fullStream) {
    if (part.type === "error") throw part.error;
    if (part.type === "text-delta") said += part.text;
  }
  return said;
});
