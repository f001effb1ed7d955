/** The changes of a call, line by line or as full files, and undo while the files are unchanged. */
import { useSignal } from "@preact/signals";
import { api } from "../../lib/api";
import { setQuery, queryParam } from "../../lib/router";
import { showToast } from "../../lib/toast";
import { revealHidden } from "../../lib/hidden-characters";
import { callerName } from "../../lib/caller";
import { Button } from "../../ui/button";
import { Chip } from "../../ui/chip";
import { Dialog } from "../../ui/dialog";
import { Patch, type PatchFile } from "../../ui/patch";
import { Fault } from "../../ui/state";
import { Ago } from "../../ui/time";
import { callPath, type CallDetail } from "./types";
import { FullFiles } from "./full-files";
import { activityWords as words } from "./words";

export function Changes({
  call,
  files,
  onUndone,
}: {
  call: CallDetail;
  files: readonly PatchFile[];
  onUndone: () => void;
}) {
  const t = words();
  const showsFullFiles = queryParam("view") === "files";
  const asking = useSignal(false);
  const fault = useSignal<Error | null>(null);
  const undo = async () => {
    const response = await api<{ restored?: unknown }>(`${callPath(call.id)}/undo`, { method: "POST" });
    showToast(t.undone(Array.isArray(response.restored) ? response.restored.length : files.length));
    asking.value = false;
    fault.value = null;
    onUndone();
  };
  const close = () => (asking.value = false);
  return (
    <div class="stack">
      <div class="row">
        {call.undone ? (
          <span class="act-undone">
            <Chip>{t.restored}</Chip>
            <Ago at={call.undone.at} />
            <span class="faint" data-given>
              {revealHidden(callerName(call.undone.by))}
            </span>
          </span>
        ) : (
          <Button sign="undo" disabled={call.undoable === false} onClick={() => void (asking.value = true)}>
            {t.undo}
          </Button>
        )}
        {!call.undone && call.undoable === false && <span class="faint">{t.undoNo}</span>}
        <span class="grow" />
        <Button
          kind="quiet"
          sign="file"
          pressed={showsFullFiles}
          onClick={() => setQuery({ view: showsFullFiles ? null : "files" })}
        >
          {t.fullFiles}
        </Button>
      </div>
      {fault.value && <Fault title={t.undoFailed} error={fault.value} />}
      {showsFullFiles ? <FullFiles id={call.id} /> : <Patch files={files} />}
      {asking.value && (
        <Dialog
          title={t.undo}
          onClose={close}
          footer={
            <>
              <Button onClick={() => void close()}>{t.cancel}</Button>
              <Button
                kind="primary"
                onFault={(error) => {
                  fault.value = error as Error;
                  close();
                }}
                onClick={undo}
              >
                {t.undo}
              </Button>
            </>
          }
        >
          <p>{t.undoAsk}</p>
          <ul class="act-files mono">
            {files.map((file) => (
              <li key={file.path} data-given>
                {file.path}
              </li>
            ))}
          </ul>
        </Dialog>
      )}
    </div>
  );
}
