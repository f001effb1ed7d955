/** A refusal with a few words for the model. */
import { useSignal } from "@preact/signals";
import { Button } from "../../ui/button";
import { Dialog } from "../../ui/dialog";
import { TextArea } from "../../ui/field";
import { Fault } from "../../ui/state";
import { approvalWords as words } from "./words";

export function DenyNote({ onClose, onDeny }: { onClose: () => void; onDeny: (note: string) => Promise<void> }) {
  const t = words();
  const text = useSignal("");
  const fault = useSignal<Error | null>(null);
  return (
    <Dialog
      title={t.note}
      onClose={onClose}
      footer={
        <>
          <Button onClick={onClose}>{t.cancel}</Button>
          <Button
            kind="danger"
            disabled={!text.value.trim()}
            onFault={(error) => (fault.value = error as Error)}
            onClick={() => onDeny(text.value.trim().slice(0, 2000))}
          >
            {t.deny}
          </Button>
        </>
      }
    >
      <TextArea
        label={t.noteLabel}
        help={t.noteHelp}
        rows={4}
        value={text.value}
        onInput={(value) => (text.value = value)}
      />
      {fault.value && <Fault title={t.failed} error={fault.value} />}
    </Dialog>
  );
}
