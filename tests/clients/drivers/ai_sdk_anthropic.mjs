// The AI SDK with its provider for Anthropic.
import { createAnthropic } from "@ai-sdk/anthropic";
import { generateText, isStepCount, jsonSchema, streamText, tool } from "ai";
import { RECALL, RECALLS, WORD, recall, runDriver } from "./driver.mjs";

const tools = { [RECALL]: tool({ description: RECALLS, inputSchema: jsonSchema(WORD), execute: recall }) };

async function ask(url, key, prompt, isStreamed, name, more) {
  const model = createAnthropic({ baseURL: url, apiKey: key })(name);
  if (!isStreamed) return (await generateText({ model, prompt, ...more })).text;
  let said = "";
  const answer = streamText({ model, prompt, ...more, onError: () => {} }); // an error is a part of the stream
  for await (const part of answer.fullStream) {
    if (part.type === "error") throw part.error;
    if (part.type === "text-delta") said += part.text;
  }
  return said;
}

await runDriver(
  (url, key, text, isStreamed) => ask(url, key, text, isStreamed, "scripted", {}),
  (url, key, text, isStreamed) =>
    ask(url, key, text, isStreamed, "scripted+tools", { tools, stopWhen: isStepCount(5) }),
);
