/** One question to the model that needs a tool, to see that all of it works. */
import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { api, type ApiError, type Failure } from "../../lib/api";
import { formatDuration, now } from "../../lib/clock";
import { revealHidden } from "../../lib/hidden-characters";
import { language } from "../../lib/language";
import { messageIn, messageText } from "../../lib/messages";
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

interface Call {
  id: string;
  tool: string;
  state: string;
  text: string;
  error?: Failure | null;
  time_ms: number;
  chat: string | null;
}
interface Outcome {
  text: string;
  /** The text as Markdown; empty if it could not be drawn. */
  html: string;
  calls: Call[];
  ms: number;
}
const TOUR = "tour";

export function TryStep({ status, next, skip, back }: StepProps) {
  const t = words();
  const models = useResource<{ data: { id: string }[] }>("/v1/models");
  const chosen = useSignal("");
  const began = useSignal(0);
  const outcome = useSignal<Outcome | null>(null);
  const fault = useSignal<ApiError | null>(null);
  const stop = useRef<AbortController | null>(null);
  useEffect(() => () => stop.current?.abort(), []);
  if (models.state === "fault" && !models.value) return <Fault error={models.error} retry={models.reload} />;
  if (!models.value) return <Loading rows={3} />;
  const names = models.value.data.map((one) => one.id);
  const model = chosen.value || names.find((one) => one !== TOUR) || TOUR;
  const ask = async () => {
    const ours = (stop.current = new AbortController());
    outcome.value = null;
    fault.value = null;
    began.value = Date.now();
    const chat = `welcome-${began.value}`;
    try {
      const reply = await api<{ choices: { message: { content: string | null } }[] }>("/v1/chat/completions", {
        body: { model, messages: [{ role: "user", content: t.question }] },
        headers: { "X-Toolyard-Show": "hidden", "X-Toolyard-Chat": chat },
        signal: ours.signal,
      });
      const { data } = await api<{ data: Call[] }>("/v1/calls", { query: { limit: 20 }, signal: ours.signal });
      const text = reply.choices[0]?.message.content ?? "";
      outcome.value = {
        text,
        html: await renderMarkdown(text, ours.signal),
        calls: data.filter((one) => one.chat === chat).reverse(),
        ms: Date.now() - began.value,
      };
    } catch (error) {
      if (!ours.signal.aborted) fault.value = error as ApiError;
    } finally {
      began.value = 0;
    }
  };
  const choose = (id: string) => {
    chosen.value = id;
    outcome.value = null;
    void api("/v1/settings", { method: "PATCH", body: { values: { default_model: id } } }).catch(toastError);
  };
  const works = outcome.value?.calls.some((one) => one.state === "success") ?? false;
  return (
    <div class="stack">
      {names.length > 1 ? (
        <Select
          label={t.modelOfChats}
          value={model}
          onInput={choose}
          options={names.map((one) => ({ value: one, name: one, given: true }))}
        />
      ) : (
        <Notice>{t.guideOnly}</Notice>
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
        {outcome.value ? (
          <TryOutcome outcome={outcome.value} works={works} model={model} />
        ) : (
          <>
            <p class="welcome-question">{t.question}</p>
            {began.value > 0 ? (
              <span class="row">
                <span class="tabular">{t.waiting(Math.max(0, Math.floor((now.value - began.value) / 1000)))}</span>
                <Button sign="stop" onClick={() => stop.current?.abort()}>
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
        {outcome.value && <Button onClick={() => void ask()}>{t.askAgain}</Button>}
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
