/** A provider to add or to change. “Save” tests it first: what does not answer is saved only when that is asked for. */
import { useSignal } from "@preact/signals";
import type { UpstreamTestResult } from "toolyard-client";
import { api, ApiError } from "../../lib/api";
import { draftOf, setDraft } from "../../lib/drafts";
import { showToast } from "../../lib/toast";
import { Button } from "../../ui/button";
import { Dialog } from "../../ui/dialog";
import { Select, TextArea, TextField } from "../../ui/field";
import { Fault } from "../../ui/state";
import { NUMBERS, toDraft, toTable, type FormDraft, type Problem } from "./form-draft";
import { PresetNotes, PresetPicker } from "./preset-picker";
import { probe, probes } from "./probe";
import { ProbeResult } from "./probe-result";
import {
  freeName,
  modelId,
  pickModel,
  presetOf,
  PROTOCOLS,
  renameValues,
  storeValues,
  titleOf,
  type Fallbacks,
  type Provider,
} from "./provider";
import { words } from "./words";

/** The key of the unsaved edits of a provider; null: a new one. */
export const draftKey = (name: string | null) => `providers.${name === null ? "+" : name}`;

export function ProviderForm({
  providers,
  provider,
  hasDefault,
  defaultModel,
  fallbacks,
  onClose,
  onSaved,
}: {
  providers: readonly Provider[];
  provider: Provider | null;
  hasDefault: boolean;
  defaultModel: string | null;
  fallbacks: Fallbacks;
  onClose: () => void;
  onSaved: () => void;
}) {
  const t = words();
  const kept = draftKey(provider ? provider.name : null);
  const draft = draftOf<FormDraft>(kept) ?? toDraft(provider);
  const tested = useSignal<UpstreamTestResult | null>(null);
  const fault = useSignal<ApiError | null>(null);
  const problem = useSignal<Problem | null>(null);
  const preset = presetOf(draft.url);
  const set = (change: Partial<FormDraft>) => {
    setDraft(kept, { ...draft, ...change });
    tested.value = null;
    fault.value = null;
    problem.value = null;
  };
  const setUrl = (url: string) => {
    const isOwn = draft.name !== "" && draft.name !== freeName(providers, draft.url);
    const protocol = presetOf(url) === preset ? draft.protocol : (presetOf(url)?.protocol ?? "");
    set({
      url,
      ...(provider ? {} : { protocol }),
      ...(provider || isOwn ? {} : { name: url ? freeName(providers, url) : "" }),
    });
  };
  const failed = (error: unknown) => (fault.value = error as ApiError);
  const name = provider?.name === "" ? "" : draft.name;
  const isRenamed = provider !== null && name !== provider.name;
  const valuesOf = (found: string | null) => {
    const table = toTable(
      draft,
      provider,
      providers.map((one) => one.name),
      found,
    );
    problem.value = typeof table === "string" ? table : null;
    if (typeof table === "string") return null;
    return isRenamed
      ? renameValues(providers, provider.name, name, table, defaultModel, fallbacks)
      : storeValues(providers, name, table);
  };
  const check = async (): Promise<ReturnType<typeof storeValues> | null> => {
    const values = valuesOf(null);
    if (!values) return null;
    if (!tested.value) tested.value = await probe(name, values);
    return valuesOf(tested.value.protocol);
  };
  const save = async () => {
    fault.value = null;
    const anyway = tested.value !== null; // the result was seen
    const values = await check();
    const result = tested.value;
    if (!values || !result || (!result.ok && !anyway)) return;
    const first = hasDefault ? "" : pickModel(result.models, preset);
    await api("/v1/settings", {
      method: "PATCH",
      body: { values: { ...values, ...(first ? { default_model: modelId(name, first) } : {}) } },
    });
    setDraft(kept, undefined);
    const others = Object.entries(probes.peek()).filter(([one]) => one !== provider?.name);
    probes.value = { ...Object.fromEntries(others), [name]: result };
    showToast(isRenamed ? t.renamed(name) : t.saved);
    onSaved();
  };
  const discard = () => {
    setDraft(kept, undefined);
    onClose();
  };
  const text = (field: keyof FormDraft) => ({
    value: draft[field],
    onInput: (value: string) => set({ [field]: value }),
  });
  return (
    <Dialog
      title={provider ? t.edit(titleOf(provider)) : t.add}
      onClose={onClose}
      footer={
        <>
          {draftOf(kept) !== undefined && (
            <Button kind="quiet" onClick={discard}>
              {t.discard}
            </Button>
          )}
          <Button
            onClick={async () => {
              tested.value = null;
              await check();
            }}
            onFault={failed}
          >
            {t.test}
          </Button>
          <Button kind="primary" onClick={save} onFault={failed}>
            {tested.value && !tested.value.ok ? t.saveAnyway : t.save}
          </Button>
        </>
      }
    >
      {!provider && (
        <PresetPicker url={draft.url} onPick={(one) => setUrl(one ? one.url : preset ? "" : draft.url || "https://")} />
      )}
      <TextField
        label={t.url}
        type="url"
        required
        placeholder={t.urlExample}
        help={provider ? t.urlBound : t.urlHelp}
        problem={problem.value === "url" ? t.needUrl : problem.value === "badUrl" ? t.badUrl : undefined}
        value={draft.url}
        onInput={setUrl}
      />
      <div class="providers-key">
        <TextField
          label={t.key}
          type="password"
          autocomplete="new-password"
          help={t.keyHelp}
          placeholder={
            provider?.table.key && !draft.removeKey ? t.keyStored : preset && !preset.keys ? t.keyNone : "sk-…"
          }
          {...text("key")}
        />
        {provider?.table.key && !draft.key && (
          <label class="check">
            <input
              type="checkbox"
              checked={draft.removeKey !== ""}
              onChange={(event) => set({ removeKey: event.currentTarget.checked ? "yes" : "" })}
            />{" "}
            {t.removeKey}
          </label>
        )}
        {preset && <PresetNotes preset={preset} url={draft.url} onUrl={setUrl} />}
      </div>
      {provider?.name !== "" && (
        <TextField
          label={t.name}
          required
          help={isRenamed ? t.renameHelp(provider.name) : t.nameHelp(draft.name || "local")}
          problem={problem.value === "name" ? t.badName : problem.value === "taken" ? t.takenName : undefined}
          {...text("name")}
        />
      )}
      <Select
        label={t.protocol}
        help={t.protocolHelp}
        value={draft.protocol}
        options={[
          ...(provider ? [] : [{ value: "", name: t.protocolFound }]),
          ...Object.entries(PROTOCOLS).map(([value, name]) => ({ value, name, given: true })),
        ]}
        onInput={(protocol) => set({ protocol })}
      />
      <details class="fold" open={["headers", "query", "former"].includes(problem.value ?? "")}>
        <summary>{t.advanced}</summary>
        <div class="stack">
          <TextArea label={t.onlyModels} help={t.onlyModelsHelp} mono rows={3} {...text("models")} />
          <TextArea
            label={t.moreKeys}
            help={t.moreKeysHelp}
            mono
            rows={2}
            placeholder={provider?.table.keys ? t.keyStored : undefined}
            {...text("keys")}
          />
          <TextArea
            label={t.headers}
            help={t.headersHelp}
            mono
            rows={2}
            placeholder={t.headersExample}
            problem={problem.value === "headers" ? t.badLines : undefined}
            {...text("headers")}
          />
          <TextArea
            label={t.query}
            help={t.queryHelp}
            mono
            rows={2}
            placeholder={t.queryExample}
            problem={problem.value === "query" ? t.badLines : undefined}
            {...text("query")}
          />
          <TextField label={t.proxy} placeholder={t.proxyExample} {...text("proxy")} />
          {(provider?.table.former_names?.length ?? 0) > 0 && (
            <TextArea
              label={t.formerNames}
              help={t.formerNamesHelp}
              mono
              rows={2}
              problem={problem.value === "former" ? t.badFormerNames : undefined}
              {...text("former_names")}
            />
          )}
          <div class="providers-numbers">
            {NUMBERS.map((field) => (
              <TextField
                key={field}
                label={t[field]}
                type="number"
                min={1}
                placeholder={
                  {
                    first_byte_seconds: "120",
                    idle_seconds: "60",
                    whole_seconds: "600",
                    tool_rounds: "10",
                    context_window: "",
                  }[field]
                }
                {...text(field)}
              />
            ))}
          </div>
        </div>
      </details>
      <div aria-live="polite">
        {tested.value && <ProbeResult result={tested.value} />}
        {fault.value && <Fault title={t.saveFailed} error={fault.value} />}
      </div>
    </Dialog>
  );
}
