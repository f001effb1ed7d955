/** One provider: where it is, whether it answers, its models, and what can be done with it. */
import { useSignal } from "@preact/signals";
import { formatDuration } from "../../lib/clock";
import { draftOf } from "../../lib/drafts";
import { showToast } from "../../lib/toast";
import { revealHidden } from "../../lib/hidden-characters";
import { Button, IconButton } from "../../ui/button";
import { Chip } from "../../ui/chip";
import { Dialog } from "../../ui/dialog";
import { Switch } from "../../ui/field";
import { Fault } from "../../ui/state";
import { draftKey } from "./form";
import { Models } from "./models";
import { modelsOf, probes, probeStored } from "./probe";
import { ProbeResult } from "./probe-result";
import { titleOf, type Provider } from "./provider";
import { words } from "./words";

export function ProviderCard({
  provider,
  chosen,
  onEdit,
  onEnable,
  onRemove,
  onChoose,
}: {
  provider: Provider;
  chosen: string | null;
  onEdit: () => void;
  onEnable: (on: boolean) => Promise<void>;
  onRemove: () => Promise<void>;
  onChoose: (id: string) => Promise<void>;
}) {
  const t = words();
  const { name, table, variable } = provider;
  const title = titleOf(provider);
  const removing = useSignal(false);
  const state = probes.value[name];
  const isOn = !table.disabled;
  const models = table.models?.length ? table.models : modelsOf(name);
  const test = async () => {
    await probeStored(name);
    const result = probes.peek()[name];
    if (typeof result === "object" && "ok" in result && result.ok)
      showToast(t.testPassed(title, formatDuration(result.ms / 1000)));
  };
  return (
    <li class={`card providers-card${isOn ? "" : " off"}`} aria-label={title}>
      <div class="providers-top">
        <div class="grow">
          <h3>
            <span data-given>{revealHidden(title)}</span>
            {name && name !== title && (
              <code class="providers-id" data-given>
                {revealHidden(name)}
              </code>
            )}
            {!isOn && <Chip>{t.off}</Chip>}
            {typeof state === "object" && "ok" in state && state.ok && (
              <Chip tone="good">{t.answers(formatDuration(state.ms / 1000))}</Chip>
            )}
            {variable && <Chip tone="info">{t.fromVariable}</Chip>}
            {draftOf(draftKey(name)) !== undefined && <Chip tone="warn">{t.unsaved}</Chip>}
          </h3>
          <p class="faint providers-url" data-given>
            {revealHidden(table.url)}
          </p>
          <p class="faint">{table.key || table.keys ? t.hasKey : t.hasNoKey}</p>
        </div>
        <div class="providers-acts">
          <Switch label={t.inUse} on={isOn} onSwitch={(on) => void onEnable(on)} />
          <Button onClick={test} disabled={state === "running"}>
            {state === "running" ? t.testing : t.test}
          </Button>
          {!variable && (
            <Button sign="edit" onClick={onEdit}>
              {t.change}
            </Button>
          )}
          {!variable && <IconButton label={t.remove(title)} sign="trash" onClick={() => (removing.value = true)} />}
        </div>
      </div>
      {variable && <p class="faint">{t.variable(variable)}</p>}
      <div aria-live="polite">
        {typeof state === "object" &&
          ("fault" in state ? (
            <Fault title={t.testBroken} error={state.fault} />
          ) : (
            !(state.ok && state.models.length) && <ProbeResult result={state} />
          ))}
      </div>
      {isOn && models.length > 0 && <Models provider={name} models={models} chosen={chosen} onChoose={onChoose} />}
      {removing.value && (
        <Dialog
          title={t.remove(title)}
          onClose={() => (removing.value = false)}
          footer={
            <>
              <Button kind="quiet" onClick={() => (removing.value = false)}>
                {t.cancel}
              </Button>
              <Button kind="danger" sign="trash" onClick={onRemove}>
                {t.removeNow}
              </Button>
            </>
          }
        >
          <p>{t.removeText}</p>
        </Dialog>
      )}
    </li>
  );
}
