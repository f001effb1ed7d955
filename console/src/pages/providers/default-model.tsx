/** The model of new chats: one of those that the providers list. */
import { isForChat } from "./model-kind";
import { Field } from "../../ui/field";
import { toastError } from "../../ui/button";
import { modelsOf } from "./probe";
import { modelId, titleOf, type Provider } from "./provider";
import { words } from "./words";

export function DefaultModel({
  providers,
  chosen,
  onChoose,
}: {
  providers: readonly Provider[];
  chosen: string | null;
  onChoose: (id: string | null) => Promise<void>;
}) {
  const t = words();
  const groups = providers
    .filter((one) => !one.table.disabled)
    .map((one) => ({
      name: one.name,
      title: titleOf(one),
      models: one.table.models?.length ? one.table.models : modelsOf(one.name).filter((id) => isForChat({ id })),
    }));
  const all = groups.flatMap((one) => one.models.map((model) => ({ id: modelId(one.name, model), model })));
  // A default that was written by hand may lack the name of its provider.
  const current = all.find((one) => one.id === chosen) ?? all.find((one) => one.model === chosen);
  return (
    <div class="card providers-section">
      <Field label={<strong>{t.defaultModel}</strong>} help={t.defaultHelp}>
        {(ids) => (
          <select
            {...ids}
            value={current?.id ?? chosen ?? ""}
            onChange={(event) => void onChoose(event.currentTarget.value || null).catch(toastError)}
          >
            <option value="">{t.firstListed}</option>
            {chosen && !current && (
              <option value={chosen} data-given>
                {chosen}
              </option>
            )}
            {groups.map((group) => (
              <optgroup key={group.name} label={group.title} data-given>
                {group.models.map((model) => (
                  <option key={model} value={modelId(group.name, model)} data-given>
                    {model}
                  </option>
                ))}
              </optgroup>
            ))}
          </select>
        )}
      </Field>
    </div>
  );
}
