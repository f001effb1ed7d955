/** A call in the journal: the row of a list, and its details. */
import type { CallRow } from "toolyard-client";
import { mainArgument } from "../../lib/main-argument";

/** The events that change a call in the journal; its progress does not. */
export const CALL_TOPICS = ["call.started", "call.finished", "call.undone"] as const;

export const callPath = (id: string) => `/v1/calls/${encodeURIComponent(id)}`;

/** The displayed state: `denied` says more than `cancelled`. */
export const stateOf = (call: CallRow) =>
  call.state === "cancelled" && call.reason === "DENIED" ? "denied" : call.state;

/** `tool:command`; the command may stand among the arguments only. */
export function nameOf(call: CallRow): string {
  const given = call.arguments as { command?: unknown } | null;
  const command =
    call.command ?? (typeof given?.command === "string" && /^[\w.-]{1,60}$/.test(given.command) ? given.command : "");
  return command ? `${call.tool}:${command}` : call.tool;
}

/** The name of a call with what it was about: `Read · notes.txt`. */
export function titleOf(call: CallRow): string {
  return [nameOf(call), mainArgument(call.arguments)].filter(Boolean).join(" · ");
}
