/** What a running reply waits for, and since or until when. */
import type { Call, Message, ProviderWait } from "./model";

export type Wait =
  | { kind: "approval"; approval: string }
  | { kind: "tool"; tools: string[]; since: number }
  | { kind: "retry"; because: ProviderWait; since: number }
  | { kind: "provider"; since: number }
  | { kind: "text"; since: number };

/** The wait of a reply, the nearest reason first: a person, a tool, the next attempt, the provider, the next words. */
export function waitOf(message: Message): Wait {
  const running = message.pieces.filter((piece): piece is Call => piece.kind === "call" && piece.ended === null);
  const asking = running.find((call) => call.state === "approval" && !call.answered);
  if (asking) return { kind: "approval", approval: asking.approval ?? "" };
  if (message.wait?.kind === "connection") return { kind: "retry", because: message.wait, since: message.heard };
  if (running.length)
    return {
      kind: "tool",
      tools: [...new Set(running.map((call) => call.tool))],
      since: Math.min(...running.map((call) => call.started)),
    };
  const since = Math.max(message.heard, message.at);
  if (message.wait) return { kind: "retry", because: message.wait, since };
  const last = message.pieces.at(-1);
  return { kind: last && last.kind !== "call" ? "text" : "provider", since };
}
