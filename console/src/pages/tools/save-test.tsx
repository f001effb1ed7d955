/** A run becomes a test of its plugin: the server writes it into the plugin's `cases.json`. */
import { useSignal } from "@preact/signals";
import { api } from "../../lib/api";
import { showToast } from "../../lib/toast";
import { revealHidden } from "../../lib/hidden-characters";
import { Button, CopyButton } from "../../ui/button";
import { StateChip } from "../../ui/chip";
import { Dialog } from "../../ui/dialog";
import { TextArea, TextField } from "../../ui/field";
import { Fault } from "../../ui/state";
import { toCase, firstLine } from "./copy-as";
import type { Envelope } from "toolyard-client";
import { tryWords } from "./words-try";

const MOST_NAME = 80;

export function SaveTest({ plugin, call, envelope }: { plugin: string; call: string; envelope: Envelope }) {
  const t = tryWords();
  const open = useSignal(false);
  return (
    <div>
      <Button
        sign="test"
        onClick={() => {
          open.value = true;
        }}
      >
        {t.saveTest}
      </Button>
      {open.value && <Saving plugin={plugin} call={call} envelope={envelope} onClose={() => (open.value = false)} />}
    </div>
  );
}

function Saving({
  plugin,
  call,
  envelope,
  onClose,
}: {
  plugin: string;
  call: string;
  envelope: Envelope;
  onClose: () => void;
}) {
  const t = tryWords();
  const isTask = Array.isArray(envelope.data?.tasks);
  const first = firstLine(envelope);
  const name = useSignal([...revealHidden(first)].slice(0, MOST_NAME).join("") || plugin);
  const expectedText = useSignal(isTask ? "" : first);
  const fault = useSignal<Error | null>(null);
  const save = async () => {
    fault.value = null;
    const saved = await api<{ name: string }>(`/v1/plugins/${encodeURIComponent(plugin)}/cases`, {
      body: { call, name: name.value.trim(), text_contains: expectedText.value },
    });
    showToast(t.testSaved(revealHidden(saved.name)));
    onClose();
  };
  return (
    <Dialog
      title={t.saveTest}
      onClose={onClose}
      footer={
        <>
          {fault.value && <CopyButton short={false} label={t.testCase} text={() => toCase(envelope)} />}
          <span class="grow" />
          <Button onClick={onClose}>{t.cancel}</Button>
          <Button
            kind="primary"
            disabled={!name.value.trim() || name.value.length > MOST_NAME}
            onFault={(error) => (fault.value = error as Error)}
            onClick={save}
          >
            {t.save}
          </Button>
        </>
      }
    >
      <p class="quiet">{t.saveTestText}</p>
      <TextField label={t.testName} required value={name.value} onInput={(value) => (name.value = value)} />
      {isTask ? (
        <p class="quiet">{t.testTask}</p>
      ) : (
        <>
          <div class="row">
            <span class="quiet">{t.testEnds}</span>
            <StateChip state={envelope.status} />
          </div>
          <TextArea
            label={t.testWords}
            help={t.testWordsHelp}
            rows={2}
            mono
            value={expectedText.value}
            onInput={(value) => (expectedText.value = value)}
          />
        </>
      )}
      {fault.value && <Fault title={t.testNotSaved} error={fault.value} />}
    </Dialog>
  );
}
