/** The result of a run: for people, as the raw envelope with its keys checked, and the output of its process. */
import { useSignal } from "@preact/signals";
import type { Envelope, ToolRow } from "toolyard-client";
import { formatDuration } from "../../lib/clock";
import { hasScope } from "../../lib/api";
import { navigate } from "../../lib/router";
import { Button, CopyButton } from "../../ui/button";
import { CanvasButton } from "../../ui/canvas-button";
import { Chip, StateChip } from "../../ui/chip";
import { Json } from "../../ui/code";
import { Icon } from "../../ui/icon";
import { Outcome } from "../../ui/outcome";
import { mainText } from "../../ui/outcome/parts";
import type { Values } from "../../ui/schema-form";
import { Empty, Fault } from "../../ui/state";
import { Tabs } from "../../ui/tabs";
import { chatPath, describeCall, draftChat } from "./chat-draft";
import { ProcessView } from "./process";
import type { Run } from "./runs";
import { SaveTest } from "./save-test";
import { Stopwatch } from "./stopwatch";
import { tryWords } from "./words-try";

type Tab = "result" | "raw" | "process";
const KEYS = ["status", "data", "text", "stats", "context"] as const;

export function Result({ tool, run, takesTests }: { tool: ToolRow; run: Run | null; takesTests: boolean }) {
  const t = tryWords();
  const tab = useSignal<Tab>("result");
  const envelope = run?.envelope ?? null;
  const tabs: { id: Tab; name: string }[] = [
    { id: "result", name: t.result },
    { id: "raw", name: t.raw },
  ];
  if (tool.plugin) tabs.push({ id: "process", name: t.process });
  const open = tabs.some((one) => one.id === tab.value) ? tab.value : "result";
  const whatRan = describeCall(tool.name, (envelope?.context.params_input ?? {}) as Values);
  const isStopped = run?.state === "fault" && run.error?.code === "stopped";
  return (
    <section class="card tools-result" aria-label={t.resultOf} aria-live="polite" aria-busy={run?.state === "running"}>
      {!run && (
        <Empty sign="play" title={t.nothingYet}>
          {t.nothingYetText}
        </Empty>
      )}
      {run?.state === "running" && (
        <div class="tools-busy">
          <span class="chip info live">
            <i aria-hidden="true" />
            <Stopwatch from={run.began} />
          </span>
        </div>
      )}
      {isStopped && (
        <div>
          <StateChip state="cancelled" />
        </div>
      )}
      {run?.state === "fault" && !isStopped && <Fault title={t.failed} error={run.error} />}
      {run && envelope && (
        <>
          <div class="row">
            <StateChip state={isCancelled(envelope) ? "cancelled" : envelope.status} />
            <span class="quiet tabular">{t.duration(formatDuration((run.ended - run.began) / 1000))}</span>
            <span class="grow" />
            <CopyButton label={t.copyResult} text={() => mainText(envelope)} />
            {run.id && (
              <a class="button icon-only quiet" href={`/activity?call=${run.id}`} title={t.openActivity}>
                <Icon sign="activity" />
                <span class="hush">{t.openActivity}</span>
              </a>
            )}
          </div>
          <Tabs label={t.resultOf} tabs={tabs} open={open} onOpen={(id) => (tab.value = id)} />
          {open === "result" && <Outcome envelope={envelope} media={run.media} />}
          {open === "raw" && (
            <>
              <KeyChecks envelope={envelope} />
              <Json value={envelope} label={t.raw} />
            </>
          )}
          {open === "process" && <ProcessView id={run.id} />}
          <div class="row">
            {run.canvas && <CanvasButton path={run.canvas} />}
            {hasScope("chat") && (
              <Button sign="chat" onClick={() => navigate(chatPath(draftChat(t.chatIntro(whatRan), envelope)))}>
                {t.sendToChat}
              </Button>
            )}
            {takesTests && tool.plugin && run.id && !isCancelled(envelope) && (
              <SaveTest key={run.id} plugin={tool.plugin} call={run.id} envelope={envelope} />
            )}
          </div>
        </>
      )}
    </section>
  );
}

function isCancelled(envelope: Envelope): boolean {
  return envelope.status === "error" && envelope.context?.reason === "CANCELLED";
}

/** Shows which of the required keys the envelope has. */
function KeyChecks({ envelope }: { envelope: Envelope }) {
  const t = tryWords();
  const has = (key: string) => Object.hasOwn(envelope, key);
  const extra = Object.keys(envelope).filter((key) => key !== "error" && !(KEYS as readonly string[]).includes(key));
  return (
    <div class="row" role="list" aria-label={t.keys}>
      {KEYS.map((key) => (
        <span key={key} role="listitem" data-given>
          <Chip tone={has(key) ? "good" : "bad"} title={has(key) ? t.keyPresent(key) : t.keyMissing(key)}>
            {key} {has(key) ? "✓" : "✗"}
          </Chip>
        </span>
      ))}
      {envelope.status === "error" && (
        <span role="listitem" data-given>
          <Chip
            tone={envelope.error ? "good" : "bad"}
            title={envelope.error ? t.keyPresent("error") : t.keyMissing("error")}
          >
            error {envelope.error ? "✓" : "✗"}
          </Chip>
        </span>
      )}
      {extra.map((key) => (
        <span key={key} role="listitem" data-given>
          <Chip tone="warn">{key} ?</Chip>
        </span>
      ))}
    </div>
  );
}
