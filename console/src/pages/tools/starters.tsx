/** Inputs to start from, one press away: the examples of the tool, and the last inputs it got. */
import type { ComponentChildren } from "preact";
import type { CallRow, ProjectFolder, ToolRow } from "toolyard-client";
import { useResource } from "../../lib/resource";
import { Icon, type Sign } from "../../ui/icon";
import { sharedFields, summarizeInput } from "./input-summary";
import { fitExamples, namesExampleFile, pickExampleFile } from "./example-file";
import type { Schema, Values } from "../../ui/schema-form";
import { tryWords } from "./words-try";

const MOST_EXAMPLES = 4;
const MOST_RECENT = 3;

export function Starters({
  tool,
  command,
  calls,
  onStart,
}: {
  tool: ToolRow;
  command: string;
  calls: readonly CallRow[];
  onStart: (input: Values) => void;
}) {
  const t = tryWords();
  const own = tool.examples.filter((one) => !command || !one.command || one.command === command);
  // Before a command is chosen, the examples of many commands would only repeat the list of them.
  const examples = useRunnable(command || own.length <= MOST_EXAMPLES ? own.map((one) => exampleInput(tool, one)) : []);
  const known = new Set(examples.map((one) => JSON.stringify(one)));
  const recent = latestInputs(calls.filter((call) => !known.has(JSON.stringify(call.arguments))));
  if (!examples.length && !recent.length) return null;
  return (
    <div class="tools-starters">
      {examples.length > 0 && (
        <Row label={t.examples}>
          {examples.slice(0, MOST_EXAMPLES).map((input, n) => (
            <Starter key={n} sign="example" input={input} shared={sharedFields(examples)} onStart={onStart} />
          ))}
        </Row>
      )}
      {recent.length > 0 && (
        <Row label={t.lastInputs}>
          {recent.map((input) => (
            <Starter
              key={JSON.stringify(input)}
              sign="history"
              input={input}
              shared={sharedFields(recent)}
              onStart={onStart}
            />
          ))}
        </Row>
      )}
    </div>
  );
}

/** The examples that this project can run, as soon as that is known. */
function useRunnable(examples: readonly Values[]): readonly Values[] {
  const needs = examples.some(namesExampleFile);
  const { value, state } = useResource<ProjectFolder>(needs ? "/v1/project/folder?path=." : null);
  if (!needs || (state === "fault" && !value)) return examples;
  const files = value?.entries.filter((one) => one.type === "file").map((one) => one.name) ?? [];
  return fitExamples(examples, pickExampleFile(files));
}

function Row({ label, children }: { label: string; children: ComponentChildren }) {
  return (
    <div class="tools-starter-row" role="group" aria-label={label}>
      <span class="faint">{label}</span>
      <div>{children}</div>
    </div>
  );
}

function Starter({
  sign,
  input,
  shared,
  onStart,
}: {
  sign: Sign;
  input: Values;
  shared: ReadonlySet<string>;
  onStart: (input: Values) => void;
}) {
  const what = summarizeInput(input, shared);
  return (
    <button type="button" class="tools-starter" data-given title={what} onClick={() => onStart(input)}>
      <Icon sign={sign} size={13} />
      <span class="mono cut">{what}</span>
    </button>
  );
}

/** The last inputs, each once; a call without input leaves nothing to fill in. */
export function latestInputs(calls: readonly CallRow[]): Values[] {
  const seen = new Map<string, Values>();
  for (const call of calls) {
    const key = JSON.stringify(call.arguments);
    if (key !== "{}" && !seen.has(key)) seen.set(key, call.arguments as Values);
  }
  return [...seen.values()].slice(0, MOST_RECENT);
}

/** An example as it would be sent: a plugin with several commands needs to hear which. */
function exampleInput(tool: ToolRow, example: ToolRow["examples"][number]): Values {
  const needs =
    tool.commands.length > 1 &&
    example.command &&
    example.arguments.command === undefined &&
    "command" in ((tool.parameters as Schema).properties ?? {});
  const given = example.arguments as Values;
  return needs ? { command: example.command, ...given } : given;
}
