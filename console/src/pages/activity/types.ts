/** A call in the journal: the row of a list, and its details. */
import type { SpecialAction } from "../../lib/special-action";
import type { Failure } from "../../lib/api";
import type { Envelope } from "../../lib/envelope";
import { mainArgument } from "../../lib/main-argument";

/** The events that change a call in the journal; its progress does not. */
export const CALL_TOPICS = ["call.started", "call.finished", "call.undone"] as const;

export interface Call {
  id: string;
  tool: string;
  state: string;
  caller: string;
  started: number;
  ended: number | null;
  arguments: unknown;
  origin: string;
  maid?: string | null;
  text?: string;
  time_ms?: number | null;
  waited_ms?: number | null;
  reason?: string | null;
  error?: Failure | null;
  command?: string | null;
  bytes_out?: number | null;
  approval?: { id: string; state: string; by?: string | null } | null;
  tasks?: string[];
  chat?: string | null;
  retry_of?: string | null;
}

export interface Step {
  at: number;
  what: string;
  by?: string | null;
  task?: string | null;
  result?: string | null;
}
export interface Side {
  state: "text" | "none" | "binary" | "too_large" | "gone";
  bytes: number | null;
  text: string | null;
}
export interface FullFile {
  path: string;
  before: Side;
  after: Side;
}
export interface Process {
  pid: number | null;
  argv: string[];
  folder: string;
  environment: string[];
  warm: boolean;
  exit_code: number | null;
  signal: string | number | null;
  limits_hit: string[];
  stdout_bytes: number | null;
  stderr: string;
  noise: string;
}
export interface CallDetail extends Call, SpecialAction {
  envelope: Envelope | null;
  undoable?: boolean;
  undone?: { at: number; by: string } | null;
  retries?: { id: string; state: string; started: number }[];
  timeline?: Step[];
  process?: Process | null;
  schedule?: string | null;
}

export const callPath = (id: string) => `/v1/calls/${encodeURIComponent(id)}`;

/** The displayed state: `denied` says more than `cancelled`. */
export const stateOf = (call: Call) => (call.state === "cancelled" && call.reason === "DENIED" ? "denied" : call.state);

/** `tool:command`; the command may stand among the arguments only. */
export function nameOf(call: Call): string {
  const given = call.arguments as { command?: unknown } | null;
  const command =
    call.command ?? (typeof given?.command === "string" && /^[\w.-]{1,60}$/.test(given.command) ? given.command : "");
  return command ? `${call.tool}:${command}` : call.tool;
}

/** The name of a call with what it was about: `Read · notes.txt`. */
export function titleOf(call: Call): string {
  return [nameOf(call), mainArgument(call.arguments)].filter(Boolean).join(" · ");
}
