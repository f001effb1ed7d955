// The TypeScript client as a program uses it. It prints one line of JSON: what it got.
import { Toolyard, ToolyardError, type ServerEvent } from "./toolyard.js";

declare const process: { argv: string[] };
const [, , url = "", key = ""] = process.argv;
const yard = new Toolyard({ url, key });
const got: Record<string, unknown> = {};

got.call = (await yard.call("Read", { path: "README.md" })).data.content;
got.failure = (await yard.call("Read", { path: "nope" })).error?.code;
const openai = await yard.call("LS", {}, { dialect: "openai", toolCallId: "call_7" });
const anthropic = await yard.call("LS", {}, { dialect: "anthropic", toolCallId: "toolu_7" });
got.ids = [openai.tool_call_id, anthropic.tool_use_id, anthropic.is_error];

const tool = await yard.request("GET /v1/tools/{name}", { path: { name: "LS" } });
got.tool = [tool.name, tool.risk, tool.native.name];
const page = await yard.request("GET /v1/calls", { query: { state: ["success"], limit: 1 } });
got.page = [page.data.length, page.data[0]?.tool, typeof page.next];
const session = await yard.request("GET /v1/session");
const status = await yard.request("GET /v1/status");
got.status = [status.database.kind, status.disk.total > 0, session.scopes.includes("admin")];
got.text = (await yard.request("GET /metrics")).includes("toolyard_requests_running");
got.archive = (await yard.request("POST /v1/backup")).size > 0;
const block = "<<<[TOOL_REQUEST]>>>\ntool_name:「始」LS「末」\n<<<[END_TOOL_REQUEST]>>>\n";
const human = await yard.request("POST /v1/human/tool", { body: block });
got.human = "details" in human ? typeof human.details.message : human;

try {
  await yard.request("GET /v1/calls/{id}", { path: { id: "a b?c" } });
} catch (error) {
  if (error instanceof ToolyardError) got.error = [error.status, error.code, error.messageCode, error.message];
}
try {
  await new Toolyard({ url, key: "ty-wrong" }).request("GET /v1/tools");
} catch (error) {
  if (error instanceof ToolyardError) got.refused = error.status;
}

const messages = [{ role: "user", content: "What is in this project?" }];
got.chat = (await yard.chat({ model: "tour", messages })).choices[0]?.message.content;
let streamed = "";
for await (const chunk of yard.streamChat({ model: "tour", messages, toolyard: { chat: "one" } })) {
  streamed += chunk.choices[0]?.delta.content ?? "";
}
let followed = "";
for await (const chunk of yard.followChat("one")) followed += chunk.choices[0]?.delta.content ?? "";
got.streams = [streamed === followed, streamed];
const stopped = new AbortController();
try {
  for await (const _ of yard.streamChat({ model: "tour", messages }, { signal: stopped.signal })) stopped.abort();
} catch (error) {
  got.aborted = (error as Error).name;
}

const stop = new AbortController();
const seen: ServerEvent[] = [];
const following = (async () => {
  for await (const event of yard.events({ signal: stop.signal })) {
    seen.push(event);
    if (event.type === "call.finished") stop.abort();
  }
})();
const calls = yard.backendMessages({ cursor: "0" });
const first = (await calls.next()).value;
got.backend = first?.message.type === "backend_only" ? [first.cursor !== "", first.message.tool_name] : first;
await calls.return(undefined);
while (seen.length === 0) await yard.call("LS"); // until the events are followed
await following;
got.events = [...new Set(seen.map((event) => event.type))].sort();

export function describeEvent(event: ServerEvent): string {
  switch (event.type) {
    case "call.finished":
      return `${event.data.tool} ${event.data.state}`;
    case "task.progress":
      return `${event.data.plugin} ${event.data.done ?? ""}`;
    case "gap":
      // @ts-expect-error a gap is of no tool
      return `${event.data.from} ${event.data.to} ${event.data.tool}`;
    default:
      return event.type;
  }
}

export async function mustNotCompile(): Promise<void> {
  // @ts-expect-error there is no such route
  await yard.request("GET /v1/nothing");
  // @ts-expect-error the name of the tool is missing
  await yard.request("GET /v1/tools/{name}");
  // @ts-expect-error a limit is a number
  await yard.request("GET /v1/calls", { query: { limit: "ten" } });
  // @ts-expect-error a rule has an effect
  await yard.request("POST /v1/approvals/rules", { body: { tool: "LS" } });
  // @ts-expect-error an envelope has no such member
  (await yard.call("LS")).tool_call_id;
}

console.log(JSON.stringify(got));
