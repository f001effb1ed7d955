/** A copy of all that must not be lost, and the way back: looked at as a whole, confirmed, held at the next start. */
import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import type { BackupContents, PendingRestore, StagedBackup } from "toolyard-client";
import { api, request, type ApiError } from "../../lib/api";
import { formatBytes } from "../../lib/clock";
import { useResource } from "../../lib/resource";
import { Button } from "../../ui/button";
import { Code } from "../../ui/code";
import { Dialog } from "../../ui/dialog";
import { Fault, Loading, Notice } from "../../ui/state";
import { backupWords, kindWord } from "./words-backup";

const PATH = "/v1/backup/restore";

export function Backup() {
  const t = backupWords();
  const state = useResource<PendingRestore>(PATH);
  const looked = useSignal<StagedBackup | null>(null);
  const fault = useSignal<ApiError | null>(null);
  const file = useRef<HTMLInputElement>(null);
  const held = useRef("");
  held.current = looked.value?.staged ?? "";
  // What was looked at and not confirmed is thrown away with the page.
  useEffect(
    () => () => {
      if (held.current) void dropStaged(held.current);
    },
    [],
  );
  const failed = (error: unknown) => (fault.value = error as ApiError);
  const look = async (archive: File | undefined) => {
    fault.value = null;
    if (archive)
      looked.value = await api<StagedBackup>(PATH, {
        method: "POST",
        body: archive,
        headers: { "Content-Type": "application/gzip" },
      });
  };
  const confirm = async () => {
    const one = looked.value!;
    state.put(await api<PendingRestore>(`${PATH}/${one.staged}/confirm`, { body: { fingerprint: one.fingerprint } }));
    looked.value = null;
  };
  const close = async () => {
    const one = looked.value;
    looked.value = null;
    if (one) await dropStaged(one.staged);
  };
  const takeBack = async () => {
    await api(PATH, { method: "DELETE" });
    state.reload();
  };
  if (state.state === "fault" && !state.value) return <Fault error={state.error} retry={state.reload} />;
  if (!state.value) return <Loading rows={3} />;
  const { waiting, command } = state.value;
  return (
    <>
      <section class="card stack">
        <h2>{t.backup}</h2>
        <p class="quiet">{t.backupText}</p>
        <div>
          <Button sign="download" onClick={download} onFault={failed}>
            {t.backupNow}
          </Button>
        </div>
      </section>
      <section class="card stack" aria-label={t.restore}>
        <h2>{t.restore}</h2>
        <p class="quiet">{t.restoreText}</p>
        {waiting && (
          <Notice tone="warn">
            <strong>{t.restorePending}</strong>
            <p>{t.restorePendingText}</p>
          </Notice>
        )}
        {waiting && (
          <>
            <ContentsView contents={waiting} />
            <Code label={t.restartsServer} text={command} />
          </>
        )}
        <input
          ref={file}
          type="file"
          accept=".gz,.tgz,application/gzip"
          hidden
          aria-label={t.choose}
          onChange={(event) => {
            const input = event.currentTarget;
            void look(input.files?.[0])
              .catch(failed)
              .finally(() => (input.value = ""));
          }}
        />
        <div class="row">
          {waiting && (
            <Button onClick={takeBack} onFault={failed}>
              {t.cancelRestore}
            </Button>
          )}
          <Button sign="upload" onClick={() => file.current?.click()}>
            {waiting ? t.another : t.choose}
          </Button>
        </div>
        {fault.value && <Fault title={t.failed} error={fault.value} />}
      </section>
      {looked.value && (
        <Dialog
          title={t.askTitle}
          onClose={() => void close()}
          footer={
            <>
              <Button onClick={close}>{t.cancel}</Button>
              <Button
                kind="danger"
                onClick={confirm}
                onFault={(error) => {
                  failed(error);
                  looked.value = null;
                }}
              >
                {t.confirm}
              </Button>
            </>
          }
        >
          <p>{t.askText}</p>
          <ContentsView contents={looked.value} />
          <Notice tone="warn">{t.askKeys}</Notice>
        </Dialog>
      )}
    </>
  );
}

function ContentsView({ contents }: { contents: BackupContents }) {
  const t = backupWords();
  const counts = Object.entries(contents.counts)
    .map(([kind, n]) => [kindWord(kind), n] as const)
    .filter(([name]) => name);
  return (
    <dl class="facts">
      <dt>{t.files}</dt>
      <dd class="settings-names">
        {contents.files.map((name) => (
          <code key={name}>{name}</code>
        ))}{" "}
        <span class="faint">{formatBytes(contents.bytes)}</span>
      </dd>
      {contents.plugins.length > 0 && (
        <>
          <dt>{t.plugins}</dt>
          <dd class="settings-names">
            {contents.plugins.map((name) => (
              <code key={name}>{name}</code>
            ))}
          </dd>
        </>
      )}
      {counts.map(([name, n]) => [
        <dt key={name}>{name}</dt>,
        <dd key={`${name}-n`} class="tabular">
          {n}
        </dd>,
      ])}
    </dl>
  );
}

async function dropStaged(staged: string): Promise<void> {
  await api(`${PATH}/${staged}`, { method: "DELETE" }).catch(() => undefined);
}

async function download(): Promise<void> {
  const response = await request("/v1/backup", { method: "POST", body: {} });
  const url = URL.createObjectURL(await response.blob());
  const link = Object.assign(document.createElement("a"), {
    href: url,
    download: /filename="?([^";]+)/.exec(response.headers.get("Content-Disposition") ?? "")?.[1] ?? "toolyard-backup",
  });
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}
