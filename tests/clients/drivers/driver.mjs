// The loop of a driver: each line of stdin is a chat to ask for, each line of stdout what the client made of it.
import { createInterface } from "node:readline";

// A tool of the client's own.
export const RECALL = "Recall";
export const RECALLS = "Recall a word that was said earlier.";
export const OURS = {
  type: "mcp",
  server_label: "toolyard",
  server_url: "http://127.0.0.1",
  require_approval: "always",
};
export const WORD = { type: "object", properties: { about: { type: "string" } }, required: ["about"] };
export const recall = ({ about }) => `violet for ${about}`;

// Answers each request with `chat(url, key, text, isStreamed)`, or with the error that it throws.
// `chatWithTool` takes the same and gives the model `recall` beside the tools of the server. So does `chatAndDecide`,
// with whether calls of the server may run, about which it lets itself be asked.
export async function runDriver(chat, chatWithTool, chatAndDecide) {
  for await (const line of createInterface({ input: process.stdin })) {
    const asked = JSON.parse(line);
    const decides = asked.is_allowed !== null;
    const ask = decides ? chatAndDecide : asked.has_tool ? chatWithTool : chat;
    let answer;
    try {
      answer = { text: await ask(asked.url, asked.key, asked.text, asked.is_streamed, asked.is_allowed) };
    } catch (error) {
      answer = { error: error?.constructor?.name ?? typeof error, message: String(error?.message ?? error) };
    }
    process.stdout.write(JSON.stringify(answer) + "\n");
  }
}
