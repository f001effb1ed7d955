/** "Would this call ask?" The server judges a call that nobody makes. */
import { useSignal } from "@preact/signals";
import type { RuleTarget } from "toolyard-client";
import { api } from "../../lib/api";
import { Button } from "../../ui/button";
import { TextArea } from "../../ui/field";
import { Fault, Notice } from "../../ui/state";
import { RuleText } from "./rule-text";
import { SuggestField, useToolNames } from "./tool-names";
import { approvalWords as words, whyOf } from "./words";

interface Verdict {
  asks: boolean;
  effect: "run" | "ask" | "deny";
  because: string;
  reason: string;
  rule: RuleTarget | null;
}

export function RuleTest() {
  const t = words();
  const tools = useToolNames();
  const tool = useSignal("");
  const text = useSignal("{}");
  const problem = useSignal("");
  const fault = useSignal<Error | null>(null);
  const verdict = useSignal<Verdict | null>(null);
  const test = async () => {
    verdict.value = fault.value = null;
    const given = parseArguments(text.value);
    problem.value = given ? "" : t.badJson;
    if (given)
      verdict.value = await api<Verdict>("/v1/approvals/test", { body: { tool: tool.value.trim(), arguments: given } });
  };
  const result = verdict.value;
  return (
    <section class="card stack" aria-label={t.trial}>
      <div>
        <h2>{t.trial}</h2>
        <p class="quiet">{t.trialText}</p>
      </div>
      <SuggestField
        label={t.tool}
        value={tool.value}
        onInput={(value) => (tool.value = value)}
        names={tools.map((one) => one.name)}
      />
      <TextArea
        mono
        rows={3}
        label={t.argumentsJson}
        problem={problem.value}
        value={text.value}
        onInput={(value) => (text.value = value)}
      />
      <div>
        <Button disabled={!tool.value.trim()} onFault={(error) => (fault.value = error as Error)} onClick={test}>
          {t.test}
        </Button>
      </div>
      {fault.value && <Fault error={fault.value} />}
      <div role="status" class="apr-verdict">
        {result && (
          <Notice tone={result.effect === "run" ? "good" : result.effect === "ask" ? "warn" : "bad"}>
            <strong>{result.effect === "run" ? t.willRun : result.effect === "ask" ? t.willAsk : t.willDeny}</strong>
            <p>{whyOf(t, result.because, result.reason)}</p>
            {result.rule && <RuleText rule={result.rule} tools={tools} />}
          </Notice>
        )}
      </div>
    </section>
  );
}

function parseArguments(text: string): Record<string, unknown> | null {
  try {
    const value: unknown = JSON.parse(text || "{}");
    return typeof value === "object" && value !== null && !Array.isArray(value)
      ? (value as Record<string, unknown>)
      : null;
  } catch {
    return null;
  }
}
