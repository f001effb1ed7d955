/** Which models answer: address and key, tested by the server before they are kept. */
import { useSignal } from "@preact/signals";
import { api, type ApiError } from "../../lib/api";
import { formatDuration } from "../../lib/clock";
import { revealHidden } from "../../lib/hidden-characters";
import { Button } from "../../ui/button";
import { TextField } from "../../ui/field";
import { Fault, Notice } from "../../ui/state";
import { messageIn } from "../../lib/messages";
import { MessageText } from "../../ui/message-text";
import { StepFooter } from "./foot";
import { settingOf, type StepProps } from "./types";
import { words } from "./words";

interface Tested {
  ok: boolean;
  models: string[];
  error: string;
  ms: number;
}
/** Addresses that many people use; nothing is asked of them before a test. */
const PRESETS: readonly [string, string][] = [
  ["OpenAI", "https://api.openai.com/v1"],
  ["DeepSeek", "https://api.deepseek.com/v1"],
  ["SiliconFlow", "https://api.siliconflow.cn/v1"],
  ["OpenRouter", "https://openrouter.ai/api/v1"],
  ["Ollama", "http://127.0.0.1:11434/v1"],
  ["LM Studio", "http://127.0.0.1:1234/v1"],
];
const SHOWN = 12;

export function ModelStep({ settings, next, skip, back, onSaved }: StepProps & { onSaved: () => void }) {
  const t = words();
  const known = settingOf(settings, "upstream_url");
  const was = typeof known?.value === "string" ? known.value : "";
  const url = useSignal(was);
  const key = useSignal("");
  const tested = useSignal<Tested | null>(null);
  const fault = useSignal<ApiError | null>(null);
  const lacks = useSignal(false);
  const change = (run: () => void) => {
    run();
    tested.value = null;
    fault.value = null;
    lacks.value = false;
  };
  const test = async () => {
    lacks.value = !url.value.trim();
    if (lacks.value) return;
    fault.value = null;
    const testedValues = [url.value, key.value];
    const response = await api<Tested>("/v1/upstream/test", {
      body: { url: url.value.trim(), ...(key.value ? { key: key.value } : {}) },
    });
    if (testedValues[0] === url.value && testedValues[1] === key.value) tested.value = response; // else it is of what was there before
  };
  const save = async () => {
    fault.value = null;
    if (url.value.trim() && (url.value.trim() !== was || key.value)) {
      await api("/v1/settings", {
        method: "PATCH",
        body: { values: { upstream_url: url.value.trim(), ...(key.value ? { upstream_key: key.value } : {}) } },
      });
      onSaved();
    }
    next();
  };
  const failed = (error: unknown) => {
    tested.value = null;
    fault.value = error as ApiError;
  };
  return (
    <form
      class="stack"
      onSubmit={(event) => {
        event.preventDefault();
        void test().catch(failed);
      }}
      autocomplete="off"
    >
      <div class="row" role="group" aria-label={t.presets}>
        {PRESETS.map(([name, address]) => (
          <Button key={name} pressed={url.value === address} onClick={() => change(() => (url.value = address))}>
            <span data-given>{name}</span>
          </Button>
        ))}
      </div>
      <TextField
        label={t.url}
        type="url"
        value={url.value}
        problem={lacks.value ? t.needUrl : undefined}
        placeholder={t.urlExample}
        onInput={(text) => change(() => (url.value = text))}
      />
      <TextField
        label={t.key}
        type="password"
        autocomplete="new-password"
        value={key.value}
        help={t.keyHelp}
        placeholder={settingOf(settings, "upstream_key")?.set ? t.keySet : "sk-…"}
        onInput={(text) => change(() => (key.value = text))}
      />
      <div aria-live="polite">
        {tested.value &&
          (tested.value.ok ? (
            <Notice tone="good">
              <strong>{tested.value.models.length ? t.modelsFound(tested.value.models.length) : t.noModels}</strong>{" "}
              <span class="faint">{t.answered(formatDuration(tested.value.ms / 1000))}</span>
              <div class="welcome-models">
                {tested.value.models.slice(0, SHOWN).map((name) => (
                  <code key={name}>{revealHidden(name)}</code>
                ))}
                {tested.value.models.length > SHOWN && (
                  <span class="faint">{t.more(tested.value.models.length - SHOWN)}</span>
                )}
              </div>
            </Notice>
          ) : (
            <Notice tone="bad">
              <strong>{t.testFailed}</strong>
              <p class="welcome-error">
                <MessageText message={messageIn(tested.value, "error")} />
              </p>
            </Notice>
          ))}
        {fault.value && <Fault title={t.saveFailed} error={fault.value} />}
      </div>
      <StepFooter back={back} skip={skip}>
        <Button type="button" onClick={test} onFault={failed}>
          {t.test}
        </Button>
        <Button kind="primary" disabled={!url.value.trim()} onClick={save} onFault={failed}>
          {t.next}
        </Button>
      </StepFooter>
    </form>
  );
}
