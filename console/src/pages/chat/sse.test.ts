import { expect, test } from "vitest";
import { events, type SseEvent } from "./sse";

async function read(...chunks: (string | Uint8Array)[]): Promise<SseEvent[]> {
  const body = new ReadableStream<Uint8Array>({
    start: (out) => {
      for (const chunk of chunks) out.enqueue(typeof chunk === "string" ? new TextEncoder().encode(chunk) : chunk);
      out.close();
    },
  });
  const sent: SseEvent[] = [];
  for await (const event of events(new Response(body))) sent.push(event);
  return sent;
}

const STREAM = ': hello\n\nid: 7\ndata: {"a":"你好"}\n\ndata: one\ndata:  two\n\nid: 9\ndata: [DONE]\n\n';
const SENT = [
  { id: 7, data: '{"a":"你好"}' },
  { id: null, data: "one\n two" },
  { id: 9, data: "[DONE]" },
];

test("events have their id and their data; comments are none", async () => {
  expect(await read(STREAM)).toEqual(SENT);
});

test("however the stream is cut, the same events come", async () => {
  const bytes = new TextEncoder().encode(STREAM);
  for (let at = 1; at < bytes.length; at += 1) expect(await read(bytes.slice(0, at), bytes.slice(at))).toEqual(SENT);
  expect(await read(...Array.from(bytes, (byte) => Uint8Array.of(byte)))).toEqual(SENT);
});

test("an event that was cut off does not come", async () => {
  expect(await read("data: one\n\ndata: tw")).toEqual([{ id: null, data: "one" }]);
});
