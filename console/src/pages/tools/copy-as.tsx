/** The call as other programs make it: curl, the command line, Python, a request block, a test. */
import { useEffect } from "preact/hooks";
import { api, hasScope } from "../../lib/api";
import { BASE } from "../../lib/base";
import { copyText } from "../../lib/copy";
import { showToast, UserError } from "../../lib/toast";
import { formatRequest } from "../../lib/request-block";
import { Icon } from "../../ui/icon";
import type { Json, Values } from "../../ui/schema-form";
import { Menu } from "./menu";
import type { Envelope } from "toolyard-client";
import { tryWords } from "./words-try";

/** Where the server keeps its things. Only an owner may know; others get commands without it. */
export interface Place {
  home: string;
  project: string;
}

let place: Promise<Place | null> | null = null;

function loadPlace(): Promise<Place | null> {
  place ??= hasScope("admin") ? api<Place>("/v1/status").catch(() => (place = null)) : Promise.resolve(null);
  return place;
}

export function CopyAs({ tool, input, envelope }: { tool: string; input: Values; envelope: Envelope | null }) {
  const t = tryWords();
  useEffect(() => void loadPlace(), []); // ahead of the press, because a copy has to follow it at once
  const copy = async (name: string, write: (place: Place | null) => string) => {
    if (await copyText(write(await loadPlace()))) showToast(t.copied(name));
  };
  const block = () => {
    try {
      return formatRequest(tool, input);
    } catch (error) {
      throw error instanceof UserError ? new UserError(t.noBlock(error.message)) : error;
    }
  };
  return (
    <Menu
      label={t.copyAs}
      choices={[
        { name: t.curl, sign: "terminal", run: () => copy(t.curl, () => toCurl(tool, input)) },
        { name: t.cli, sign: "terminal", run: () => copy(t.cli, (place) => toCommand(tool, input, place)) },
        { name: t.python, sign: "code", run: () => copy(t.python, (place) => toPython(tool, input, place)) },
        { name: t.block, sign: "code", run: () => copy(t.block, block) },
        ...(envelope
          ? [{ name: t.testCase, sign: "test" as const, run: () => copy(t.testCase, () => toCase(envelope)) }]
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

export function toCommand(tool: string, input: Values, place: Place | null): string {
  const words = ["toolyard call", /^[\w.][\w.-]*$/.test(tool) ? tool : quoteShell(tool)];
  if (Object.keys(input).length) words.push("--args", quoteShell(JSON.stringify(input)));
  if (place) words.push("--home", quoteShell(place.home), "--project", quoteShell(place.project));
  return words.join(" ");
}

export function toPython(tool: string, input: Values, place: Place | null): string {
  const where = place ? `project=${JSON.stringify(place.project)}, home=${JSON.stringify(place.home)}` : "";
  const values = Object.keys(input).length ? `, ${formatPython(input, "    ")}` : "";
  return [
    "import toolyard",
    "",
    `with toolyard.open(${where}) as yard:`,
    `    envelope = yard.call(${JSON.stringify(tool)}${values})`,
    "    print(envelope.text)",
    "",
  ].join("\n");
}

/** A value as Python writes it. Text and numbers are the same as in JSON. */
function formatPython(value: Json, indent: string): string {
  if (value === null) return "None";
  if (typeof value === "boolean") return value ? "True" : "False";
  if (typeof value !== "object") return JSON.stringify(value);
  const inner = `${indent}    `;
  const parts = Array.isArray(value)
    ? value.map((one) => formatPython(one, inner))
    : Object.entries(value).map(([name, one]) => `${JSON.stringify(name)}: ${formatPython(one, inner)}`);
  const [open, close] = Array.isArray(value) ? "[]" : "{}";
  const line = `${open}${parts.join(", ")}${close}`;
  if (line.length <= 80 && !line.includes("\n")) return line;
  return `${open}\n${parts.map((part) => `${inner}${part},\n`).join("")}${indent}${close}`;
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
