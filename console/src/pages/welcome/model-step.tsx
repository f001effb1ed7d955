/** Which models answer: a preset, its key, and one press that tests and stores both. */
import { useSignal } from "@preact/signals";
import type { UpstreamTestResult } from "toolyard-client";
import { api, type ApiError } from "../../lib/api";
import { draftOf, peekDraft, setDraft } from "../../lib/drafts";
import { revealHidden } from "../../lib/hidden-characters";
import { Button } from "../../ui/button";
import { TextField } from "../../ui/field";
import { Fault, Notice } from "../../ui/state";
import { PresetNotes, PresetPicker } from "../providers/preset-picker";
import { probe, probes } from "../providers/probe";
import { ProbeResult } from "../providers/probe-result";
import {
  freeName,
  listProviders,
  modelId,
  pickModel,
  plainProtocol,
  presetOf,
  storeValues,
  titleOf,
  toProviderUrl,
  valueOf,
} from "../providers/provider";
import { words as providerWords } from "../providers/words";
import { StepFooter } from "./foot";
import type { StepProps } from "./types";
import { words } from "./words";

interface Draft {
  url: string;
  key: string;
}
const KEPT = "welcome.model";

export function ModelStep({ settings, next, skip, back, onSaved }: StepProps & { onSaved: () => void }) {
  const t = words();
  const p = providerWords();
  const providers = listProviders(settings);
  const { url, key } = draftOf<Draft>(KEPT) ?? { url: "", key: "" };
  const tested = useSignal<UpstreamTestResult | null>(null);
  const fault = useSignal<ApiError | null>(null);
  const problem = useSignal("");
  const preset = presetOf(url);
  const set = (change: Partial<Draft>) => {
    setDraft(KEPT, { url, key, ...change });
    tested.value = null;
    fault.value = null;
    problem.value = "";
  };
  const connect = async (anyway = false) => {
    fault.value = null;
    const address = toProviderUrl(url);
    problem.value = address ? "" : url.trim() ? p.badUrl : p.needUrl;
    if (!address) return;
    if (address !== url) setDraft(KEPT, { url: address, key }); // the person sees what is asked
    const name = freeName(providers, address);
    const table = { url: address, key: key.trim(), protocol: preset?.protocol };
    const sent = peekDraft<Draft>(KEPT);
    const result = anyway && tested.value ? tested.value : await probe(name, storeValues(providers, name, table));
    if (sent !== peekDraft<Draft>(KEPT)) return; // something else was typed meanwhile
    tested.value = result;
    if (!result.ok && !anyway) return;
    const protocol = preset?.protocol ?? plainProtocol(result.protocol);
    const values = storeValues(providers, name, { ...table, protocol });
    const model = valueOf<string>(settings, "default_model") ? "" : pickModel(result.models, preset);
    await api("/v1/settings", {
      method: "PATCH",
      body: { values: { ...values, ...(model ? { default_model: modelId(name, model) } : {}) } },
    });
    probes.value = { ...probes.peek(), [name]: result };
    setDraft(KEPT, undefined);
    onSaved();
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
        event.preventDefault(); // Enter presses the button
      }}
      autocomplete="off"
      noValidate // an address needs no https:// here
    >
      {providers.length > 0 && (
        <Notice tone="good" action={<Button onClick={next}>{t.next}</Button>}>
          {t.connected} <span data-given>{revealHidden(providers.map(titleOf).join(", "))}</span>{" "}
          <a href="/providers">{t.manage}</a>
        </Notice>
      )}
      <PresetPicker url={url} onPick={(one) => set({ url: one ? one.url : preset ? "" : url || "https://" })} />
      <TextField
        label={p.url}
        type="url"
        value={url}
        problem={problem.value || undefined}
        placeholder={p.urlExample}
        onInput={(text) => set({ url: text })}
      />
      <div class="providers-key">
        <TextField
          label={p.key}
          type="password"
          autocomplete="new-password"
          value={key}
          help={p.keyHelp}
          placeholder={preset && !preset.keys ? p.keyNone : "sk-…"}
          onInput={(text) => set({ key: text })}
        />
        {preset && <PresetNotes preset={preset} url={url} onUrl={(other) => set({ url: other })} />}
      </div>
      <div aria-live="polite">
        {tested.value && <ProbeResult result={tested.value} />}
        {fault.value && <Fault title={t.saveFailed} error={fault.value} />}
      </div>
      <StepFooter back={back} skip={skip}>
        {tested.value && !tested.value.ok && (
          <Button onClick={() => connect(true)} onFault={failed}>
            {p.saveAnyway}
          </Button>
        )}
        <Button kind="primary" type="submit" onClick={() => connect()} onFault={failed}>
          {tested.value && !tested.value.ok ? t.testAgain : t.connect}
        </Button>
      </StepFooter>
    </form>
  );
}
