// openai-node.
import OpenAI from "openai";
import { runDriver } from "./driver.mjs";

await runDriver(async (url, key, text, isStreamed) => {
  const client = new OpenAI({ baseURL: url, apiKey: key });
  const messages = [{ role: "user", content: text }];
  if (!isStreamed) {
    return (await client.chat.completions.create({ model: "scripted", messages })).choices[0].message.content;
  }
  let said = "";
  for await (const chunk of await client.chat.completions.create({ model: "scripted", messages, stream: true })) {
    said += chunk.choices[0]?.delta?.content ?? "";
  }
  return said;
});
