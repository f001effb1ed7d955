/** The choice of a model: a list, or with very many models a dialog that finds one; and a note while its provider does
 * not answer. */
import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { hasScope } from "../../lib/api";
import { navigate } from "../../lib/router";
import { Button } from "../../ui/button";
import { Dialog } from "../../ui/dialog";
import { Search } from "../../ui/field";
import { Icon } from "../../ui/icon";
import { Notice } from "../../ui/state";
import type { Conversation } from "./conversation";
import {
  chatModels,
  isUnavailable,
  loadModels,
  modelsFailed,
  modelsKnown,
  rememberModel,
  unavailable,
  usualModel,
} from "./models";
import { words } from "./words";

const PROVIDERS = "/providers";
const MANY = 20; // models with which one types instead of looking
const SHOWN = 50;

export function ModelPicker({ conversation }: { conversation: Conversation }) {
  const t = words();
  const finding = useSignal(false);
  useEffect(() => {
    void loadModels().then(() => {
      if (!conversation.model.peek()) conversation.model.value = usualModel();
    });
  }, [conversation]);
  const ids = chatModels();
  const chosen = conversation.model.value;
  const isLoading = !chosen && (!modelsKnown.value || usualModel() !== "");
  const all = chosen && !ids.includes(chosen) ? [chosen, ...ids] : ids;
  const choose = (id: string) => {
    conversation.model.value = id;
    rememberModel(id);
    void conversation.save();
  };
  const nameOf = (id: string) => (isUnavailable(id) ? t.modelAway(id) : id);
  if (modelsFailed.value && !all.length) return <span class="faint">{t.noModels}</span>;
  if (all.length > MANY)
    return (
      <>
        <button
          type="button"
          class="button quiet chat-model"
          aria-label={`${t.model}: ${nameOf(chosen)}`}
          aria-haspopup="dialog"
          title={nameOf(chosen)}
          data-given
          onClick={() => (finding.value = true)}
        >
          <bdi class="cut">{nameOf(chosen)}</bdi>
          <Icon sign="down" size={14} />
        </button>
        {finding.value && (
          <ModelFinder ids={all} chosen={chosen} onChoose={choose} onClose={() => (finding.value = false)} />
        )}
      </>
    );
  return (
    <select
      class="chat-model"
      aria-label={t.model}
      title={t.model}
      value={chosen}
      disabled={isLoading}
      onChange={(event) => {
        if (event.currentTarget.value === PROVIDERS) return navigate(PROVIDERS);
        choose(event.currentTarget.value);
      }}
    >
      {!chosen && <option value="">{isLoading ? t.loadingModels : t.noModel}</option>}
      {all.map((id) => (
        <option key={id} value={id} data-given>
          {nameOf(id)}
        </option>
      ))}
      {hasScope("admin") && <option value={PROVIDERS}>{t.manageModels}</option>}
    </select>
  );
}

function ModelFinder({
  ids,
  chosen,
  onChoose,
  onClose,
}: {
  ids: readonly string[];
  chosen: string;
  onChoose: (id: string) => void;
  onClose: () => void;
}) {
  const t = words();
  const search = useSignal("");
  const parts = search.value.toLowerCase().split(/\s+/).filter(Boolean);
  const matching = ids.filter((id) => parts.every((part) => id.toLowerCase().includes(part)));
  const choose = (id: string | undefined) => {
    if (!id) return;
    onChoose(id);
    onClose();
  };
  return (
    <Dialog title={t.model} onClose={onClose} footer={hasScope("admin") && <a href={PROVIDERS}>{t.manageModels}</a>}>
      <div
        onKeyDown={(event) => {
          if (event.key !== "Enter" || event.isComposing) return;
          event.preventDefault(); // the dialog stands inside the form of the message
          choose(matching[0]);
        }}
      >
        <Search label={t.findModel} value={search.value} onInput={(text) => (search.value = text)} />
      </div>
      <ul class="chat-models">
        {matching.slice(0, SHOWN).map((id) => (
          <li key={id}>
            <button type="button" aria-pressed={id === chosen} data-given onClick={() => choose(id)}>
              <bdi class="cut grow">{isUnavailable(id) ? t.modelAway(id) : id}</bdi>
              {id === chosen && <Icon sign="chosen" size={16} />}
            </button>
          </li>
        ))}
      </ul>
      {matching.length > SHOWN && <p class="faint">{t.moreModels(matching.length - SHOWN)}</p>}
      {!matching.length && <p class="faint">{t.noSuchModel}</p>}
    </Dialog>
  );
}

/** Says that the chosen model cannot answer now, before somebody writes to it. */
export function ModelNotice({ conversation }: { conversation: Conversation }) {
  const t = words();
  const chosen = conversation.model.value;
  const again = async () => {
    await loadModels();
    if (!conversation.model.peek()) conversation.model.value = usualModel();
  };
  if (!unavailable.value.length || !isUnavailable(chosen)) return null;
  return (
    <Notice tone="warn" action={<Button onClick={again}>{t.checkAgain}</Button>}>
      {chosen ? t.providerAway(chosen) : t.allAway(unavailable.value.join(", "))}{" "}
      {hasScope("admin") && <a href={PROVIDERS}>{t.toProviders}</a>}
    </Notice>
  );
}
