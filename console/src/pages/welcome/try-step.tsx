/** One question to the model that needs a tool, to see that all of it works. */
import { signal, useSignal } from "@preact/signals";
import type { CallRow } from "toolyard-client";
import { api, type ApiError } from "../../lib/api";
import { formatDuration, now } from "../../lib/clock";
import { revealHidden } from "../../lib/hidden-characters";
import { language } from "../../lib/language";
import { messageIn, messageText } from "../../lib/messages";
import { isForChat } from "../providers/model-kind";
import { useResource } from "../../lib/resource";
import { Button, toastError } from "../../ui/button";
import { StateChip } from "../../ui/chip";
import { Select } from "../../ui/field";
import { Icon } from "../../ui/icon";
import { Rendered } from "../../ui/rendered";
import { Fault, Loading, Notice } from "../../ui/state";
import { StepFooter } from "./foot";
import type { StepProps } from "./types";
import { words } from "./words";

interface Outcome {
  text: string;
  /** The text as Markdown; empty if it could not be drawn. */
  html: string;
  calls: CallRow[];
  ms: number;
}
const TOUR = "tour";
/** What was asked last and what came of it: it is there again after another page, and after a reload. */
interface Kept {
  project: string;
  model: string;
  outcome: Outcome;
}
const STORED = "toolyard.welcome.try";
const kept = signal<Kept | null>(JSON.parse(sessionStorage.getItem(STORED) ?? "null") as Kept | null);
/** The question that is being answered; its answer is waited for on other pages too. */
const asked = signal<{ at: number; model: string; stop: AbortController } | null>(null);

export function keepTry(value: Kept | null): void {
  kept.value = value;
  if (value) sessionStorage.setItem(STORED, JSON.stringify(value));
  else sessionStorage.removeItem(STORED);
}

export function TryStep({ status, next, skip, back }: StepProps) {
  const t = words();
  const models = useResource<{ data: { id: string }[] }>("/v1/models");
  const chosen = useSignal("");
  const fault = useSignal<ApiError | null>(null);
  if (models.state === "fault" && !models.value) return <Fault error={models.error} retry={models.reload} />;
  if (!models.value) return <Loading rows={3} />;
  const names = models.value.data.filter(isForChat).map((one) => one.id);
  const last = asked.value?.model ?? kept.value?.model ?? "";
  const model = chosen.value || (names.includes(last) ? last : (names.find((one) => one !== TOUR) ?? TOUR));
  const isKept = kept.value?.model === model && kept.value.project === status.project && !asked.value;
  const outcome = isKept ? kept.value!.outcome : null;
  const ask = async () => {
    const at = Date.now(),
      stop = new AbortController(),
      signal = stop.signal;
    keepTry(null);
    fault.value = null;
    asked.value = { at, model, stop };
    const chat = `welcome-${at}`;
    try {
      const reply = await api<{ choices: { message: { content: string | null } }[] }>("/v1/chat/completions", {
        body: { model, messages: [{ role: "user", content: t.question }] },
        headers: { "X-Toolyard-Show": "hidden", "X-Toolyard-Chat": chat },
        signal,
      });
      const { data } = await api<{ data: CallRow[] }>("/v1/calls", { query: { limit: 20 }, signal });
      const text = reply.choices[0]?.message.content ?? "";
      const html = await renderMarkdown(text, signal);
      const calls = data.filter((one) => one.chat === chat).reverse();
      keepTry({ project: status.project, model, outcome: { text, html, calls, ms: Date.now() - at } });
    } catch (error) {
      if (!signal.aborted) fault.value = error as ApiError;
    } finally {
      asked.value = null;
    }
  };
  const choose = (id: string) => {
    chosen.value = id;
    fault.value = null;
    void api("/v1/settings", { method: "PATCH", body: { values: { default_model: id } } }).catch(toastError);
  };
  const works = outcome?.calls.some((one) => one.state === "success") ?? false;
  return (
    <div class="stack">
      {names.length > 1 ? (
        <Select
          label={t.modelOfChats}
          value={model}
          disabled={asked.value !== null}
          onInput={choose}
          options={names.map((one) => ({ value: one, name: one, given: true }))}
        />
      ) : (
        <Notice>{models.value.data.length > 1 ? t.noChatModels : t.guideOnly}</Notice>
      )}
      <div class="welcome-folder">
        <Icon sign="folder" />
        <span class="grow">
          {t.reads}{" "}
          <span class="mono" data-given>
            {revealHidden(status.project)}
          </span>
        </span>
      </div>
      <div class="welcome-try" aria-live="polite">
        {outcome ? (
          <TryOutcome outcome={outcome} works={works} model={model} />
        ) : (
          <>
            <p class="welcome-question">{t.question}</p>
            {asked.value ? (
              <span class="row">
                <span class="tabular">{t.waiting(Math.max(0, Math.floor((now.value - asked.value.at) / 1000)))}</span>
                <Button sign="stop" onClick={() => asked.peek()?.stop.abort()}>
                  {t.stop}
                </Button>
              </span>
            ) : (
              <Button kind="primary" sign="play" onClick={() => void ask()}>
                {t.ask}
              </Button>
            )}
          </>
        )}
      </div>
      {fault.value && <Fault title={t.failed} error={fault.value} />}
      <StepFooter back={back} skip={works ? undefined : skip}>
        {outcome && <Button onClick={() => void ask()}>{t.askAgain}</Button>}
        {works && (
          <Button kind="primary" onClick={next}>
            {t.next}
          </Button>
        )}
      </StepFooter>
    </div>
  );
}

async function renderMarkdown(text: string, signal: AbortSignal): Promise<string> {
  const lang = language.value === "zh" ? "zh" : "en";
  const body = { text, to: "html", kind: "markdown", partial: false, lang };
  const drawn = await api<{ rendered: string }>("/v1/reply/render", { body, signal }).catch(() => null);
  return drawn?.rendered ?? "";
}

function TryOutcome({ outcome, works, model }: { outcome: Outcome; works: boolean; model: string }) {
  const t = words();
  return (
    <>
      {works && (
        <span class="welcome-tick">
          <Icon sign="check" size={34} />
        </span>
      )}
      <strong>
        {works ? (model === TOUR ? t.guideWorks : t.works) : outcome.calls.length ? t.toolFailed : t.noTool}
      </strong>
      {!outcome.calls.length && (
        <p>
          {t.noToolText} <a href="/settings?find=offer">{t.toolsInChats}</a>
        </p>
      )}
      <ul class="welcome-calls">
        {outcome.calls.map((one) => (
          <li key={one.id}>
            <StateChip state={one.state} />
            <a href={`/activity?call=${encodeURIComponent(one.id)}`} data-given>
              {revealHidden(one.tool)}
            </a>
            <span class="faint" data-given>
              {messageText(one.error ? messageIn(one.error, "message") : messageIn(one, "text")).slice(0, 120)}
            </span>
          </li>
        ))}
      </ul>
      {outcome.text && (
        <blockquote class="welcome-answer" data-given>
          {outcome.html ? <Rendered html={outcome.html} /> : revealHidden(outcome.text)}
        </blockquote>
      )}
      <span class="faint">
        {t.tookBy(formatDuration(outcome.ms / 1000))}{" "}
        {model === TOUR ? t.guide : <span data-given>{revealHidden(model)}</span>}
      </span>
    </>
  );
}
