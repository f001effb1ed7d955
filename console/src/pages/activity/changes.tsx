/** What the call changed, and the way back while the files are still as it left them. */
import { useSignal } from "@preact/signals";
import { api } from "../../lib/api";
import { toast } from "../../lib/toast";
import { Button } from "../../ui/button";
import { Dialog } from "../../ui/dialog";
import { Patch, type PatchFile } from "../../ui/patch";
import { Fault } from "../../ui/state";
import { callPath, type WholeCall } from "./types";
import { activityWords as words } from "./words";

export function Changes({ call, files, onUndone }: { call: WholeCall; files: readonly PatchFile[]; onUndone: () => void }) {
  const t = words();
  const asking = useSignal(false);
  const fault = useSignal<Error | null>(null);
  const undo = async () => {
    const came = await api<{ restored?: unknown }>(`${callPath(call.id)}/undo`, { method: "POST" });
    toast(t.undone(Array.isArray(came.restored) ? came.restored.length : files.length));
    asking.value = false;
    fault.value = null;
    onUndone();
  };
  const close = () => (asking.value = false);
  return (
    <div class="stack">
      <div class="row">
        <Button sign="undo" disabled={call.undoable === false} onClick={() => void (asking.value = true)}>{t.undo}</Button>
        {call.undoable === false && <span class="faint">{t.undoNo}</span>}
      </div>
      {fault.value && <Fault title={t.undoFailed} error={fault.value} />}
      <Patch files={files} />
      {asking.value && <Dialog title={t.undo} onClose={close} footer={<><Button onClick={() => void close()}>{t.cancel}</Button><Button kind="primary" onFault={(error) => { fault.value = error as Error; close(); }} onClick={undo}>{t.undo}</Button></>}><p>{t.undoAsk}</p><ul class="act-files mono">{files.map((file) => <li key={file.path} data-given>{file.path}</li>)}</ul></Dialog>}
    </div>
  );
}
