/** The call as other programs make it: curl, the command line, a request block, a test. */
import { BASE } from "../../lib/base";
import { copyText } from "../../lib/copy";
import { showToast } from "../../lib/toast";
import { formatRequest } from "../../lib/request-block";
import { Icon } from "../../ui/icon";
import type { Values } from "../../ui/schema-form";
import { Menu } from "./menu";
import type { Envelope } from "./types";
import { tryWords } from "./words-try";

export function CopyAs({ tool, input, envelope }: { tool: string; input: Values; envelope: Envelope | null }) {
  const t = tryWords();
  const copy = async (name: string, write: () => string) => {
    if (await copyText(write())) showToast(t.copied(name));
  };
  const block = () => {
    try {
      return formatRequest(tool, input);
    } catch (error) {
      throw new Error(t.noBlock(error instanceof Error ? error.message : ""), { cause: error });
    }
  };
  return (
    <Menu
      label={t.copyAs}
      choices={[
        { name: t.curl, sign: "globe", run: () => copy(t.curl, () => toCurl(tool, input)) },
        { name: t.cli, sign: "right", run: () => copy(t.cli, () => toCommand(tool, input)) },
        { name: t.block, sign: "chat", run: () => copy(t.block, block) },
        ...(envelope
          ? [{ name: t.testCase, sign: "check" as const, run: () => copy(t.testCase, () => toCase(envelope)) }]
          : []),
      ]}
    >
      <Icon sign="copy" size={16} />
      <span>{t.copyAs}</span>
    </Menu>
  );
}

export function toCurl(tool: string, input: Values): string {
  return [
    `curl -X POST ${quoteShell(`${location.origin}${BASE}/v1/tools/${encodeURIComponent(tool)}`)}`,
    `-H "Authorization: Bearer $TOOLYARD_KEY"`,
    "-H 'Content-Type: application/json'",
    `-d ${quoteShell(JSON.stringify(input))}`,
  ].join(" \\\n  ");
}

export function toCommand(tool: string, input: Values): string {
  return `toolyard call ${/^[\w.-]+$/.test(tool) ? tool : quoteShell(tool)}${Object.keys(input).length ? ` --args ${quoteShell(JSON.stringify(input))}` : ""}`;
}

/** The last run as an entry of the plugin's `cases.json`, which `toolyard plugin test` runs. */
export function toCase(envelope: Envelope): string {
  const first = firstLine(envelope);
  return JSON.stringify(
    {
      name: first.slice(0, 80),
      args: envelope.context.params_input ?? {},
      expect: { status: envelope.status, ...(first ? { text_contains: first } : {}) },
    },
    null,
    2,
  );
}

/** The text that a test expects in an answer by default. */
export function firstLine(envelope: Envelope): string {
  return (envelope.text.split("\n", 1)[0] ?? "").slice(0, 400);
}

/** For a shell: inside single quotes nothing means anything but the quote itself. */
function quoteShell(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}
