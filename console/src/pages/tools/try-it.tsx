/** Try a tool: its input as a form or as JSON, run and stop it, see what came out, and its last runs. */
import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import type { CallDetail, ToolRow } from "toolyard-client";
import { api } from "../../lib/api";
import { isNarrow } from "../../lib/narrow";
import { setQuery, queryParam } from "../../lib/router";
import { useEvent } from "../../lib/use-event";
import { Button, toastError } from "../../ui/button";
import { Switch } from "../../ui/field";
import { problemsOf, SchemaForm, type Problems, type Values } from "../../ui/schema-form";
import { Notice } from "../../ui/state";
import { Tabs } from "../../ui/tabs";
import { callSchema, renameFields, selectedCommand } from "../../ui/schema/command";
import { fixedValues, resolveSchema } from "../../ui/schema/shape";
import { commandsOf } from "./commands";
import { CopyAs } from "./copy-as";
import { History, useHistory } from "./history";
import { JsonInput } from "./json-input";
import { saveInput, loadInput } from "./stored-input";
import { Result } from "./result";
import { restoreRun, runs, start } from "./runs";
import { helpOf } from "./translation";
import { Starters } from "./starters";
import { Stopwatch } from "./stopwatch";
import { tryWords } from "./words-try";

const NONE: Problems = new Map();

export function TryIt({ tool, takesTests }: { tool: ToolRow; takesTests: boolean }) {
  const t = tryWords();
  const input = useSignal<Values>(loadInput(tool.name));
  const tried = useSignal(false);
  const badJson = useSignal("");
  const prefilled = useSignal<"" | "filled" | "lost">("");
  const commands = commandsOf(tool);
  const check = (values: Values) => problemsOf(callSchema(tool.parameters, commands, values), values);
  const problems = tried.value ? check(input.value) : NONE;
  const put = (next: Values) => {
    input.value = next;
    saveInput(tool, next);
  };
  /** Fill in the input of an example or of another call. */
  const fill = (next: Values) => {
    put(renameFields(commands, next, tool.synonyms));
    tried.value = false;
  };
  const run = runs.value[tool.name];
  const calls = useHistory(tool.name, run?.ended ?? 0);
  const isRunning = run?.state === "running";
  const asJson = queryParam("input") === "json";
  const fields = Object.keys(tool.parameters.properties ?? {});
  const schema = callSchema(tool.parameters, commands, input.value);
  const dry = Object.hasOwn(resolveSchema(schema, schema).properties ?? {}, "dry_run");
  const isMasked = JSON.stringify(input.value).includes("[masked");
  const go = (values: Values) => {
    tried.value = true;
    if (badJson.value || check(values).size) return focusProblem();
    const own = callSchema(tool.parameters, commands, values);
    void start(tool.name, { ...fixedValues(own, own), ...values }, queryParam("call"));
    lookAtResult();
  };
  const show = useEvent(async (id: string) => {
    const before = runs.peek()[tool.name]?.began;
    const call = await api<CallDetail>(`/v1/calls/${encodeURIComponent(id)}`);
    if (call.tool !== tool.name) throw new Error(t.lost);
    if (runs.peek()[tool.name]?.began !== before) return; // another run has begun since
    fill(call.arguments as Values);
    restoreRun(tool.name, call);
    lookAtResult();
  });
  const linked = queryParam("call");
  useEffect(() => {
    prefilled.value = "";
    if (linked)
      show(linked).then(
        () => (prefilled.value = "filled"),
        () => (prefilled.value = "lost"),
      );
  }, [linked, prefilled, show]);
  const count = problems.size;
  return (
    <div class="tools-try">
      <div class="tools-two">
        <section
          class="card tools-input"
          aria-label={t.input}
          onKeyDown={(event) => {
            if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && !isRunning) {
              event.preventDefault();
              go(input.value);
            }
          }}
        >
          <div class="row spread">
            <Tabs
              label={t.inputForm}
              tabs={[
                { id: "form", name: t.form },
                { id: "json", name: t.json },
              ]}
              open={asJson ? "json" : "form"}
              onOpen={(id) => {
                if (!badJson.value) setQuery({ input: id === "json" ? "json" : "" });
              }}
            />
            <span class="row">
              {Object.keys(input.value).length > 0 && (
                <Button
                  kind="quiet"
                  onClick={() => {
                    put({});
                    tried.value = false;
                    setQuery({ call: "" });
                  }}
                >
                  {t.reset}
                </Button>
              )}
              <CopyAs tool={tool.name} input={input.value} envelope={run?.envelope ?? null} />
            </span>
          </div>
          {prefilled.value === "filled" && <Notice>{t.prefilled}</Notice>}
          {prefilled.value === "lost" && <Notice tone="warn">{t.lost}</Notice>}
          {isMasked && <Notice tone="warn">{t.masked}</Notice>}
          <Starters
            tool={tool}
            command={selectedCommand(commands, input.value)?.name ?? ""}
            calls={calls.rows}
            onStart={(values) => {
              fill(values);
              setQuery({ call: "" });
            }}
          />
          {asJson ? (
            <JsonInput
              value={input.value}
              onValue={put}
              onProblem={(problem) => (badJson.value = problem)}
              problems={[...problems].map(([at, problem]) => `${at}: ${problem}`)}
            />
          ) : fields.length || commands.length ? (
            <SchemaForm
              schema={tool.parameters}
              commands={commands}
              value={input.value}
              onValue={put}
              problems={problems}
              help={helpOf(tool)}
              leaveOut={dry ? ["dry_run"] : []}
            />
          ) : (
            <p class="quiet">{t.noParameters}</p>
          )}
          <div class="tools-run">
            {isRunning ? (
              <Button kind="danger" sign="stop" disabled={run.stopping} onClick={run.stop}>
                {run.stopping ? t.stopping : t.stop}
              </Button>
            ) : (
              <Button kind="primary" sign="play" onClick={() => go(input.value)}>
                {t.run}
              </Button>
            )}
            {dry && (
              <Switch
                label={t.dryRun}
                help={t.dryRunHelp}
                on={input.value.dry_run === true}
                onSwitch={(on) => put({ ...input.value, dry_run: on })}
              />
            )}
            {isRunning && (
              <span class="quiet">
                <Stopwatch from={run.began} />
              </span>
            )}
            {count > 0 && !asJson && (
              <span class="problem" role="status">
                {t.missing(count)}
              </span>
            )}
          </div>
        </section>
        <Result tool={tool} run={run ?? null} takesTests={takesTests} />
      </div>
      <History
        calls={calls}
        shown={run?.id ?? ""}
        onShow={(id) =>
          void show(id)
            .then(() => setQuery({ call: "" }))
            .catch(toastError)
        }
        onRun={(values) => {
          fill(values);
          go(input.peek());
        }}
      />
    </div>
  );
}

/** On a phone the result stands under the form: bring it into sight. */
function lookAtResult(): void {
  requestAnimationFrame(() =>
    document
      .querySelector(".tools-result")
      ?.scrollIntoView({ block: isNarrow.value ? "start" : "nearest", behavior: "smooth" }),
  );
}

function focusProblem(): void {
  requestAnimationFrame(() => document.querySelector<HTMLElement>(".tools-input [aria-invalid]")?.focus());
}
