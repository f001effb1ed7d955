/** Try a tool: its input as a form or as JSON, run and stop it, see what came out, and its last runs. */
import { useComputed, useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { api } from "../../lib/api";
import { isNarrow } from "../../lib/narrow";
import { setQuery, queryParam } from "../../lib/router";
import { useEvent } from "../../lib/use-event";
import { Button, toastError } from "../../ui/button";
import { Switch } from "../../ui/field";
import { problemsOf, SchemaForm, type Problems, type Values } from "../../ui/schema-form";
import { Notice } from "../../ui/state";
import { Tabs } from "../../ui/tabs";
import { CopyAs } from "./copy-as";
import { History } from "./history";
import { JsonInput } from "./json-input";
import { saveInput, loadInput } from "./stored-input";
import { Result } from "./result";
import { restoreRun, runs, start } from "./runs";
import { helpOf } from "./translation";
import { Stopwatch } from "./stopwatch";
import type { Call, Tool } from "./types";
import { tryWords } from "./words-try";

const NONE: Problems = new Map();

export function TryIt({ tool, takesTests }: { tool: Tool; takesTests: boolean }) {
  const t = tryWords();
  const input = useSignal<Values>(loadInput(tool.name));
  const tried = useSignal(false);
  const badJson = useSignal("");
  const prefilled = useSignal<"" | "filled" | "lost">("");
  const problems = useComputed<Problems>(() => (tried.value ? problemsOf(tool.parameters, input.value) : NONE));
  const put = (next: Values) => {
    input.value = next;
    saveInput(tool.name, next);
  };
  const run = runs.value[tool.name];
  const isRunning = run?.state === "running";
  const asJson = queryParam("input") === "json";
  const fields = Object.keys(tool.parameters.properties ?? {});
  const dry = fields.includes("dry_run");
  const go = (values: Values) => {
    tried.value = true;
    if (badJson.value || problemsOf(tool.parameters, values).size) return focusProblem();
    void start(tool.name, values, queryParam("call"));
    lookAtResult();
  };
  const show = useEvent(async (id: string) => {
    const before = runs.peek()[tool.name]?.began;
    const call = await api<Call>(`/v1/calls/${encodeURIComponent(id)}`);
    if (call.tool !== tool.name) throw new Error(t.lost);
    if (runs.peek()[tool.name]?.began !== before) return; // another run has begun since
    put(call.arguments);
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
  const count = problems.value.size;
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
          {prefilled.value === "filled" && (
            <Notice>
              {t.prefilled}
              {JSON.stringify(input.value).includes("[masked]") && ` ${t.masked}`}
            </Notice>
          )}
          {prefilled.value === "lost" && <Notice tone="warn">{t.lost}</Notice>}
          {tool.examples.length > 0 && (
            <div class="row">
              <span class="faint">{t.example}</span>
              {tool.examples.map((one, n) => (
                <Button
                  key={n}
                  onClick={() => {
                    put(exampleInput(tool, one));
                    tried.value = false;
                  }}
                >
                  {one.command && tool.commands.length > 1 ? one.command : t.exampleN(n + 1)}
                </Button>
              ))}
            </div>
          )}
          {asJson ? (
            <JsonInput
              value={input.value}
              onValue={put}
              onProblem={(problem) => (badJson.value = problem)}
              problems={[...problems.value].map(([at, problem]) => `${at}: ${problem}`)}
            />
          ) : fields.length ? (
            <SchemaForm
              schema={tool.parameters}
              value={input.value}
              onValue={put}
              problems={problems.value}
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
        tool={tool.name}
        shown={run?.id ?? ""}
        ended={run?.ended ?? 0}
        onShow={(id) =>
          void show(id)
            .then(() => setQuery({ call: "" }))
            .catch(toastError)
        }
        onRun={(values) => {
          put(values);
          go(values);
        }}
      />
    </div>
  );
}

/** An example as it would be sent: a plugin with several commands needs to hear which. */
function exampleInput(tool: Tool, example: Tool["examples"][number]): Values {
  const needs =
    tool.commands.length > 1 &&
    example.command &&
    example.arguments.command === undefined &&
    "command" in (tool.parameters.properties ?? {});
  return needs ? { command: example.command, ...example.arguments } : example.arguments;
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
