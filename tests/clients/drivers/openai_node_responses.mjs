// openai-node with `responses`.
import OpenAI from "openai";
import { OURS, RECALL, RECALLS, WORD, recall, runDriver } from "./driver.mjs";

const tools = [{ type: "function", name: RECALL, description: RECALLS, parameters: WORD, strict: false }];

async function ask(client, isStreamed, body) {
  if (!isStreamed) return client.responses.create(body);
  const stream = client.responses.stream(body);
  let said = "";
  stream.on("response.output_text.delta", (event) => (said += event.delta));
  const response = await stream.finalResponse();
  if (response.status === "failed") throw new Error(response.error.message);
  if (said !== response.output_text) throw new Error(`${said} is not ${response.output_text}`);
  return response;
}

async function chat(url, key, text, isStreamed) {
  const client = new OpenAI({ baseURL: url, apiKey: key });
  return (await ask(client, isStreamed, { model: "scripted", input: text })).output_text;
}

// Goes on with the id of the response before, or streamed with all items and nothing stored.
async function chatWithTool(url, key, text, isStreamed) {
  const client = new OpenAI({ baseURL: url, apiKey: key });
  const same = { model: "scripted+tools", tools, ...(isStreamed ? { store: false } : {}) };
  let input = [{ role: "user", content: text }];
  let response = await ask(client, isStreamed, { ...same, input });
  for (;;) {
    const calls = response.output.filter((item) => item.type === "function_call");
    if (!calls.length) return response.output_text;
    const results = calls.map((call) => ({
      type: "function_call_output",
      call_id: call.call_id,
      output: recall(JSON.parse(call.arguments)),
    }));
    input = isStreamed ? [...input, ...response.output, ...results] : results;
    const before = isStreamed ? {} : { previous_response_id: response.id };
    response = await ask(client, isStreamed, { ...same, ...before, input });
  }
}

// Answers with the id of the response that has asked, or streamed with all items and nothing stored.
async function chatAndDecide(url, key, text, isStreamed, isAllowed) {
  const client = new OpenAI({ baseURL: url, apiKey: key });
  const same = { model: "scripted", tools: [OURS], ...(isStreamed ? { store: false } : {}) };
  let input = [{ role: "user", content: text }];
  let response = await ask(client, isStreamed, { ...same, input });
  for (;;) {
    const questions = response.output.filter((item) => item.type === "mcp_approval_request");
    if (!questions.length) return response.output_text;
    const answers = questions.map(({ id }) => ({
      type: "mcp_approval_response",
      approval_request_id: id,
      approve: isAllowed,
    }));
    input = isStreamed ? [...input, ...response.output, ...answers] : answers;
    const before = isStreamed ? {} : { previous_response_id: response.id };
    response = await ask(client, isStreamed, { ...same, ...before, input });
  }
}

await runDriver(chat, chatWithTool, chatAndDecide);
