// The loop of a driver: each line of stdin is a chat to ask for, each line of stdout what the client made of it.
import { createInterface } from "node:readline";

// Answers each request with `chat(url, key, text, isStreamed)`, or with the error that it throws.
export async function runDriver(chat) {
  for await (const line of createInterface({ input: process.stdin })) {
    const asked = JSON.parse(line);
    let answer;
    try {
      answer = { text: await chat(asked.url, asked.key, asked.text, asked.is_streamed) };
    } catch (error) {
      answer = { error: error?.constructor?.name ?? typeof error, message: String(error?.message ?? error) };
    }
    process.stdout.write(JSON.stringify(answer) + "\n");
  }
}
