// @anthropic-ai/sdk.
import Anthropic from "@anthropic-ai/sdk";
import { RECALL, RECALLS, WORD, recall, runDriver } from "./driver.mjs";

const tools = [{ name: RECALL, description: RECALLS, input_schema: WORD }];
const textOf = (message) => message.content.map((block) => (block.type === "text" ? block.text : "")).join("");

async function ask(client, isStreamed, body) {
  if (!isStreamed) return client.messages.create({ max_tokens: 1000, ...body });
  let said = "";
  const stream = client.messages.stream({ max_tokens: 1000, ...body }).on("text", (text) => (said += text));
  const message = await stream.finalMessage();
  if (said !== textOf(message)) throw new Error(`${said} is not ${textOf(message)}`);
  return message;
}

async function chat(url, key, text, isStreamed) {
  const client = new Anthropic({ baseURL: url, apiKey: key });
  const message = await ask(client, isStreamed, { model: "scripted", messages: [{ role: "user", content: text }] });
  return message.content[0].text; // as the first example of its README reads it
}

async function chatWithTool(url, key, text, isStreamed) {
  const client = new Anthropic({ baseURL: url, apiKey: key });
  const messages = [{ role: "user", content: text }];
  for (;;) {
    const message = await ask(client, isStreamed, { model: "scripted+tools", tools, messages });
    const calls = message.content.filter((block) => block.type === "tool_use");
    if (!calls.length) return textOf(message);
    messages.push({ role: "assistant", content: message.content });
    const content = calls.map((call) => ({ type: "tool_result", tool_use_id: call.id, content: recall(call.input) }));
    messages.push({ role: "user", content });
  }
}

await runDriver(chat, chatWithTool);
