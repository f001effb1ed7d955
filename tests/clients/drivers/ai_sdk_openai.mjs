// The AI SDK with its provider for OpenAI.
import { createOpenAI } from "@ai-sdk/openai";
import { generateText, isStepCount, jsonSchema, streamText, tool } from "ai";
import { OURS, RECALL, RECALLS, WORD, recall, runDriver } from "./driver.mjs";

const tools = { [RECALL]: tool({ description: RECALLS, inputSchema: jsonSchema(WORD), execute: recall }) };

async function ask(url, key, prompt, isStreamed, name, more) {
  const model = createOpenAI({ baseURL: url, apiKey: key })(name);
  if (!isStreamed) return (await generateText({ model, prompt, ...more })).text;
  let said = "";
  const answer = streamText({ model, prompt, ...more, onError: () => {} }); // an error is a part of the stream
  for await (const part of answer.fullStream) {
    if (part.type === "error") throw part.error;
    if (part.type === "text-delta") said += part.text;
  }
  return said;
}

async function chatAndDecide(url, key, text, isStreamed, isAllowed) {
  const openai = createOpenAI({ baseURL: url, apiKey: key });
  const mcp = openai.tools.mcp({
    serverLabel: OURS.server_label,
    serverUrl: OURS.server_url,
    requireApproval: OURS.require_approval,
  });
  const messages = [{ role: "user", content: text }];
  for (;;) {
    const asked = { model: openai("scripted"), messages, tools: { mcp } };
    const answer = isStreamed ? await collect(streamText({ ...asked, onError: () => {} })) : await generateText(asked);
    messages.push(...answer.response.messages);
    const questions = answer.content.filter((part) => part.type === "tool-approval-request");
    if (!questions.length) return answer.text;
    const toResponse = ({ approvalId }) => ({
      type: "tool-approval-response",
      approvalId,
      approved: isAllowed,
      providerExecuted: true,
    });
    messages.push({ role: "tool", content: questions.map(toResponse) });
  }
}

async function collect(answer) {
  for await (const part of answer.fullStream) if (part.type === "error") throw part.error;
  return { text: await answer.text, content: await answer.content, response: await answer.response };
}

await runDriver(
  (url, key, text, isStreamed) => ask(url, key, text, isStreamed, "scripted", {}),
  (url, key, text, isStreamed) =>
    ask(url, key, text, isStreamed, "scripted+tools", { tools, stopWhen: isStepCount(5) }),
  chatAndDecide,
);
