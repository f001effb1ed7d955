/** Models that stand in for another one, in order, when its provider does not answer. */
import { useSignal } from "@preact/signals";
import { useId } from "preact/hooks";
import { draftOf, setDraft } from "../../lib/drafts";
import { revealHidden } from "../../lib/hidden-characters";
import type { ApiError } from "../../lib/api";
import { Button, IconButton } from "../../ui/button";
import { Chip } from "../../ui/chip";
import { Dialog } from "../../ui/dialog";
import { TextField } from "../../ui/field";
import { Icon } from "../../ui/icon";
import { Fault } from "../../ui/state";
import type { Fallbacks } from "./provider";
import { words } from "./words";

interface Draft {
  /** The model as it is stored; empty: a new one. */
  before: string;
  model: string;
  others: readonly string[];
}
const KEPT = "providers.fallback";

export function FallbackList({
  fallbacks,
  known,
  onSave,
}: {
  fallbacks: Fallbacks;
  known: readonly string[];
  onSave: (fallbacks: Fallbacks) => Promise<void>;
}) {
  const t = words();
  const open = useSignal(false);
  const edit = (draft: Draft) => {
    if (draftOf<Draft>(KEPT)?.before !== draft.before) setDraft(KEPT, draft);
    open.value = true;
  };
  const remove = (model: string) =>
    onSave(Object.fromEntries(Object.entries(fallbacks).filter(([one]) => one !== model)));
  return (
    <section class="card providers-section" aria-label={t.fallbacks}>
      <div class="row spread">
        <h2>{t.fallbacks}</h2>
        <Button sign="plus" onClick={() => edit({ before: "", model: "", others: [] })}>
          {t.addFallback}
        </Button>
      </div>
      <p class="quiet">{t.fallbacksText}</p>
      {draftOf(KEPT) !== undefined && !open.value && (
        <p>
          <Chip tone="warn">{t.unsaved}</Chip>{" "}
          <Button kind="quiet" onClick={() => (open.value = true)}>
            {t.continueEditing}
          </Button>
        </p>
      )}
      {Object.keys(fallbacks).length > 0 && (
        <ul class="providers-fallbacks">
          {Object.entries(fallbacks).map(([model, others]) => (
            <li key={model}>
              <span class="grow providers-chain" data-given>
                {[model, ...others].map((one, at) => [
                  at > 0 && <Icon key={`${one}-i`} sign="right" size={14} />,
                  <code key={one}>{revealHidden(one)}</code>,
                ])}
              </span>
              <IconButton
                label={t.editFallback(model)}
                sign="edit"
                onClick={() => edit({ before: model, model, others })}
              />
              <IconButton label={t.removeFallback(model)} sign="trash" onClick={() => remove(model)} />
            </li>
          ))}
        </ul>
      )}
      {open.value && draftOf<Draft>(KEPT) && (
        <FallbackForm fallbacks={fallbacks} known={known} onSave={onSave} onClose={() => (open.value = false)} />
      )}
    </section>
  );
}

function FallbackForm({
  fallbacks,
  known,
  onSave,
  onClose,
}: {
  fallbacks: Fallbacks;
  known: readonly string[];
  onSave: (fallbacks: Fallbacks) => Promise<void>;
  onClose: () => void;
}) {
  const t = words();
  const draft = draftOf<Draft>(KEPT)!;
  const list = useId();
  const next = useSignal("");
  const fault = useSignal<ApiError | null>(null);
  const lacks = useSignal(false);
  const set = (change: Partial<Draft>) => {
    setDraft(KEPT, { ...draft, ...change });
    lacks.value = false;
  };
  const withNext = () => {
    const one = next.value.trim();
    return one && one !== draft.model && !draft.others.includes(one) ? [...draft.others, one] : draft.others;
  };
  const add = () => {
    set({ others: withNext() });
    next.value = "";
  };
  const move = (at: number, by: number) => {
    const others = [...draft.others];
    others.splice(at + by, 0, ...others.splice(at, 1));
    set({ others });
  };
  const save = async () => {
    const others = withNext();
    lacks.value = !draft.model.trim() || !others.length;
    if (lacks.value) return;
    const rest = Object.entries(fallbacks).filter(([one]) => one !== draft.before);
    await onSave(Object.fromEntries([...rest, [draft.model.trim(), others]]));
    setDraft(KEPT, undefined);
    onClose();
  };
  return (
    <Dialog
      title={draft.before ? t.editFallback(draft.before) : t.addFallback}
      onClose={onClose}
      footer={
        <>
          <Button
            kind="quiet"
            onClick={() => {
              setDraft(KEPT, undefined);
              onClose();
            }}
          >
            {t.discard}
          </Button>
          <Button kind="primary" onClick={save} onFault={(error) => (fault.value = error as ApiError)}>
            {t.save}
          </Button>
        </>
      }
    >
      <datalist id={list}>
        {known.map((one) => (
          <option key={one} value={one} />
        ))}
      </datalist>
      <TextField
        label={t.fallbackFor}
        list={list}
        required
        value={draft.model}
        onInput={(model) => set({ model })}
        problem={lacks.value ? t.needFallback : undefined}
      />
      {draft.others.length > 0 && (
        <ol class="providers-order">
          {draft.others.map((one, at) => (
            <li key={one}>
              <code class="grow" data-given>
                {revealHidden(one)}
              </code>
              <IconButton label={t.moveUp(one)} sign="up" disabled={at === 0} onClick={() => move(at, -1)} />
              <IconButton
                label={t.moveDown(one)}
                sign="down"
                disabled={at === draft.others.length - 1}
                onClick={() => move(at, 1)}
              />
              <IconButton
                label={t.takeOut(one)}
                sign="close"
                onClick={() => set({ others: draft.others.filter((other) => other !== one) })}
              />
            </li>
          ))}
        </ol>
      )}
      <div class="providers-next">
        <TextField
          label={draft.others.length ? t.thenTry : t.firstTry}
          list={list}
          value={next.value}
          onInput={(value) => (next.value = value)}
        />
        <Button sign="plus" disabled={!next.value.trim()} onClick={add}>
          {t.addModel}
        </Button>
      </div>
      {fault.value && <Fault title={t.saveFailed} error={fault.value} />}
    </Dialog>
  );
}
