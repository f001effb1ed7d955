/** A call in other words: a command for a shell, and a test. */
import type { CallDetail } from "toolyard-client";
import { BASE } from "../../lib/base";
import { nameOf } from "./types";

/** The key stays a variable of the shell: what is copied must not carry a secret. */
export function toCurl(call: CallDetail): string {
  const body = JSON.stringify(call.arguments ?? {}).replaceAll("'", "'\\''");
  return [
    `curl -sS -X POST '${location.origin}${BASE}/v1/tools/${encodeURIComponent(call.tool)}'`,
    `-H "Authorization: Bearer $TOOLYARD_KEY"`,
    `-H 'Content-Type: application/json'`,
    `-d '${body}'`,
  ].join(" \\\n  ");
}

export function toFixture(call: CallDetail): string {
  const { envelope } = call;
  const expect = envelope && {
    status: envelope.status,
    text: envelope.text,
    data: envelope.data,
    ...(envelope.error ? { error: envelope.error } : {}),
  };
  const fixture = { name: nameOf(call), tool: call.tool, arguments: call.arguments ?? {}, expect };
  return `${JSON.stringify(fixture, null, 2)}\n`;
}
