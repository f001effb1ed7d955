/** Providers: the servers that run the models, which of them answer, the default model, and who stands in for whom. */
import "./style.css";
import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import type { SettingRow } from "toolyard-client";
import { api, ApiError, hasScope } from "../../lib/api";
import { draftOf } from "../../lib/drafts";
import { language } from "../../lib/language";
import { useResource } from "../../lib/resource";
import { navigate, queryParam, route, setQuery } from "../../lib/router";
import { showToast } from "../../lib/toast";
import { Button } from "../../ui/button";
import { Chip } from "../../ui/chip";
import { Empty, Fault, Loading } from "../../ui/state";
import { ProviderCard } from "./card";
import { DefaultModel } from "./default-model";
import { FallbackList } from "./fallbacks";
import { draftKey, ProviderForm } from "./form";
import { modelsOf, probes, probeStored } from "./probe";
import {
  listProviders,
  modelId,
  removeValues,
  storeValues,
  valueOf,
  type Fallbacks,
  type Provider,
  type Values,
} from "./provider";
import { words } from "./words";

/** Where the chat keeps the model that was used last in this browser. */
const LAST_MODEL = "toolyard.model";

export default function Providers() {
  const t = words();
  const all = useResource<{ settings: SettingRow[] }>(hasScope("admin") ? "/v1/settings" : null);
  if (!hasScope("admin"))
    return (
      <div class="page">
        <Empty sign="key" title={t.onlyOwner} action={<Button onClick={() => navigate("/chat")}>{t.toChat}</Button>}>
          {t.onlyOwnerText}
        </Empty>
      </div>
    );
  return (
    <div class="page providers">
      <div class="head">
        <h1 class="grow">{t.title}</h1>
        <a href={`/docs/providers?lang=${language.value === "zh" ? "zh" : "en"}`} target="_blank" rel="noopener">
          {t.docs}
        </a>
      </div>
      <p class="quiet">{t.text}</p>
      {all.state === "fault" && !all.value && <Fault error={all.error} retry={all.reload} />}
      {!all.value && all.state !== "fault" && <Loading rows={4} />}
      {all.value && <ProviderList settings={all.value.settings} reload={all.reload} />}
    </div>
  );
}

function ProviderList({ settings, reload }: { settings: readonly SettingRow[]; reload: () => void }) {
  const t = words();
  const fault = useSignal<ApiError | null>(null);
  const providers = listProviders(settings);
  const isAny = providers.length > 0;
  const chosen = valueOf<string>(settings, "default_model");
  const fallbacks = valueOf<Fallbacks>(settings, "fallbacks") ?? {};
  // Each provider is asked once when the page is opened: a wrong key is seen before a chat fails.
  const asked = JSON.stringify(providers.filter((one) => !one.table.disabled).map((one) => one.name));
  useEffect(() => {
    for (const name of JSON.parse(asked) as string[]) if (probes.peek()[name] === undefined) void probeStored(name);
  }, [asked]);
  const patch = async (values: Values) => {
    fault.value = null;
    await api("/v1/settings", { method: "PATCH", body: { values } });
    reload();
  };
  const attempt = (values: Values) => patch(values).catch((error: unknown) => void (fault.value = error as ApiError));
  const choose = async (id: string | null) => {
    await patch({ default_model: id });
    localStorage.removeItem(LAST_MODEL); // new chats of this browser use the default too
    showToast(id ? t.defaultSet(id) : t.defaultUnset);
  };
  const enable = async (one: Provider, on: boolean) => {
    await attempt(storeValues(providers, one.name, { ...one.table, disabled: !on }));
    if (on) void probeStored(one.name);
  };
  const forget = (name: string) => {
    probes.value = Object.fromEntries(Object.entries(probes.peek()).filter(([one]) => one !== name));
  };
  const edited = route.value.query.get("edit");
  const editing = edited === null ? undefined : providers.find((one) => one.name === edited);
  const adding = queryParam("add") !== "";
  const close = () => setQuery({ add: null, edit: null });
  const known = providers.flatMap((one) =>
    (one.table.models?.length ? one.table.models : modelsOf(one.name)).map((model) => modelId(one.name, model)),
  );
  const add = (
    <Button kind="primary" sign="plus" onClick={() => setQuery({ add: "1" }, false)}>
      {t.add}
    </Button>
  );
  const unsaved = draftOf(draftKey(null)) !== undefined && !adding && <Chip tone="warn">{t.unsaved}</Chip>;
  return (
    <>
      {fault.value && <Fault title={t.saveFailed} error={fault.value} />}
      {isAny ? (
        <>
          <div class="row spread">
            <h2>{t.list}</h2>
            <span class="row">
              {unsaved}
              {add}
            </span>
          </div>
          <ul class="providers-list">
            {providers.map((one) => (
              <ProviderCard
                key={one.name}
                provider={one}
                chosen={chosen}
                onEdit={() => navigate(`/providers?edit=${encodeURIComponent(one.name)}`)}
                onEnable={(on) => enable(one, on)}
                onRemove={async () => {
                  await attempt(removeValues(providers, one.name, chosen, fallbacks));
                  forget(one.name);
                }}
                onChoose={choose}
              />
            ))}
          </ul>
          <DefaultModel providers={providers} chosen={chosen} onChoose={choose} />
          <FallbackList
            fallbacks={fallbacks}
            known={known}
            onSave={(next) => patch({ fallbacks: Object.keys(next).length ? next : null })}
          />
        </>
      ) : (
        <Empty
          sign="plug"
          title={t.none}
          action={
            <span class="row">
              {add}
              {unsaved}
            </span>
          }
        >
          {t.noneText}
        </Empty>
      )}
      {(adding || editing) && (
        <ProviderForm
          key={editing ? editing.name : "+"}
          providers={providers}
          provider={editing ?? null}
          hasDefault={chosen !== null || isAny}
          defaultModel={chosen}
          fallbacks={fallbacks}
          onClose={close}
          onSaved={() => {
            close();
            reload();
          }}
        />
      )}
    </>
  );
}
